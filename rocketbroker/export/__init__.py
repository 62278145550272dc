# -*- test-case-name: tests.export -*-
"""Topics as Parquet files: each message once, also over crashes.

The modules:

  - L{runs}: one run: lease, plans, copies, commits.
  - L{execution}: a plan carried out and verified.
  - L{plan_check}: of which cluster and messages it is, by
    L{queue_identity} of messages.
  - L{planning}: what a run covers.
  - L{file_split}: from ranges to files, by
    L{sizes} of messages.
  - L{plans}: plans as values and as JSON.
  - L{storage}: the place where an export lies: a
    directory; L{arrow_storage}: a store, as S3;
    L{open_storage}: the one that an address names.
  - L{ledger}: what an export knows of itself.
  - L{resume_point}: reads that begin where an export ended.
  - L{copying}: the tasks that read and write.
  - L{api}: exports out of a program with its own session.
  - L{filtering}: some messages only, and still checked.
  - L{spark_jobs}: Spark, which runs them.
  - L{parquet}: one Parquet file, written and checked.
  - L{history}: the ledger for those who only look.
  - L{verify}: whether files and source are what it says.
  - L{lags}: how far it is behind.
  - L{report}: all of it as a page.
  - L{follow}: runs as messages come, by
    L{process_jobs}, without Spark.
  - L{jsonlines}: how it goes, for programs.
  - L{error_text}: errors on one line.
  - L{progress}: how far it is.
"""
