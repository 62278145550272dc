"""Ask the broker in this container whether clients can use it.

Prints its answer; the exit status is 0 if they can, else 1.
"""

import http.client
import sys


def main(port="5557"):
    """Ask the port of metrics."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=4)
    try:
        connection.request("GET", "/healthz/ready")
        answer = connection.getresponse()
        words = answer.read().decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"The port {port} of metrics does not answer: {error}.")
    if answer.status != 200:
        sys.exit(f"{answer.status}: {words}")
    print(words)


if __name__ == "__main__":
    main(*sys.argv[1:])
