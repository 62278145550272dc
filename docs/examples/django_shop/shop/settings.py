"""The least that Django needs."""

SECRET_KEY = "an example's"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
