# -*- test-case-name: tests.export -*-
"""Topics as Parquet files: each message once, also over crashes.

- L{runs<rocketbroker.export.runs>}: one run: lease, plan, Spark job, commit.
- L{planning<rocketbroker.export.planning>}: what a run covers.
- L{plans<rocketbroker.export.plans>}: plans as values and as JSON.
- L{ledger<rocketbroker.export.ledger>}: what an export directory knows of itself.
- L{copying<rocketbroker.export.copying>}: the tasks that read and write.
- L{parquet<rocketbroker.export.parquet>}: one Parquet file, written and checked.
- L{checksums<rocketbroker.export.checksums>}: CRC-32C.
- L{progress<rocketbroker.export.progress>}: how far it is.
"""
