"""What do the real libraries read? Prints it as JSON; run by test_tools.py with a Python that has them.

python read_back.py tensorboard|mlflow|wandb FOLDER
"""

import json
import sys
from pathlib import Path


def tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runs = {}
    for run in sorted(path for path in Path(folder).iterdir() if path.is_dir()):
        events = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        tags = events.Tags()
        runs[run.name] = {tag: [[e.step, repr(e.value)] for e in events.Scalars(tag)] for tag in tags["scalars"]}
        if "hyperparameters/text_summary" in tags["tensors"] or "hyperparameters" in tags["tensors"]:
            runs[run.name]["(text)"] = True
    return runs


def mlflow(folder):
    import os

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.store.tracking.file_store import FileStore

    store = FileStore(str(Path(folder) / "mlruns"))
    runs = {}
    for run in store.search_runs(["1"], "", 1, max_results=1000):
        names = sorted(run.data.metrics)
        runs[run.info.run_name] = {
            name: [[m.step, repr(m.value)] for m in store.get_metric_history(run.info.run_id, name)] for name in names
        }
        runs[run.info.run_name]["(params)"] = dict(run.data.params)
        runs[run.info.run_name]["(status)"] = run.info.status
    return runs


def wandb(folder):
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    runs = {}
    for path in sorted(Path(folder).glob("*/*.wandb")):
        store, run = DataStore(), {}
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "run":
                run["(params)"] = {item.key: json.loads(item.value_json) for item in record.run.config.update}
                run["(name)"] = record.run.display_name
                run["(start)"] = record.run.start_time.seconds
            elif kind == "history":
                for item in record.history.item:
                    run.setdefault(item.key, []).append([record.history.step.num, item.value_json])
            elif kind == "exit":
                run["(exit)"] = record.exit.exit_code
        runs[path.parent.name] = run
    return runs


if __name__ == "__main__":
    print(json.dumps({"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}[sys.argv[1]](sys.argv[2])))
