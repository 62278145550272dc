# -*- test-case-name: tests.export -*-
"""Topics as Parquet files: each message once, also over crashes.

The modules:

  - L{runs<rocketbroker.export.runs>}: one run: lease, plans, copies, commits.
  - L{execution<rocketbroker.export.execution>}: a plan carried out and verified.
  - L{binding<rocketbroker.export.binding>}: of which cluster and messages it is, by
    L{marks<rocketbroker.export.marks>} of messages.
  - L{planning<rocketbroker.export.planning>}: what a run covers.
  - L{cutting<rocketbroker.export.cutting>}: from ranges to files, by
    L{sizes<rocketbroker.export.sizes>} of messages.
  - L{plans<rocketbroker.export.plans>}: plans as values and as JSON.
  - L{storage<rocketbroker.export.storage>}: the place where an export lies: a
    directory; L{arrow_storage<rocketbroker.export.arrow_storage>}: a store, as S3;
    L{open_storage<rocketbroker.export.open_storage>}: the one that an address names.
  - L{ledger<rocketbroker.export.ledger>}: what an export knows of itself.
  - L{starting<rocketbroker.export.starting>}: reads that begin where an export ended.
  - L{copying<rocketbroker.export.copying>}: the tasks that read and write.
  - L{api<rocketbroker.export.api>}: exports out of a program with its own session.
  - L{filtering<rocketbroker.export.filtering>}: some messages only, and still checked.
  - L{spark_jobs<rocketbroker.export.spark_jobs>}: Spark, which runs them.
  - L{parquet<rocketbroker.export.parquet>}: one Parquet file, written and checked.
  - L{history<rocketbroker.export.history>}: the ledger for those who only look.
  - L{verify<rocketbroker.export.verify>}: whether files and source are what it says.
  - L{lags<rocketbroker.export.lags>}: how far it is behind.
  - L{report<rocketbroker.export.report>}: all of it as a page.
  - L{follow<rocketbroker.export.follow>}: runs as messages come, by
    L{process_jobs<rocketbroker.export.process_jobs>}, without Spark.
  - L{jsonlines<rocketbroker.export.jsonlines>}: how it goes, for programs.
  - L{sentences<rocketbroker.export.sentences>}: errors on one line.
  - L{progress<rocketbroker.export.progress>}: how far it is.
"""
