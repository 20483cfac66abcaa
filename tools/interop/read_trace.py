#!/usr/bin/env python3
"""Opens a windrow trace with pyarrow, an independent reader of Arrow files, and says what it sees.

    python read_trace.py x.trace.arrow                     # facts and a per-layer popcount table, as JSON
    python read_trace.py x.trace.arrow --rewrite y.trace.arrow [--batch-rows 1000] [--compress zstd]

The exit status is 1 when a column's type or nullability is not what the format says. A rewritten file has the same
rows and metadata in pyarrow's own encoding and no manifest; `windrow trace check` reads it back.
"""

import argparse
import json
import struct
import sys

import pyarrow as pa
import pyarrow.ipc as ipc


def expected_schema(header):
    """The columns that the header calls for: name -> type."""
    mask = pa.binary((header["units"] + 63) // 64 * 8)
    columns = {
        "seq": pa.uint32(),
        "pos": pa.uint32(),
        "phase": pa.uint8(),
        "token": pa.uint32(),
        "layer": pa.uint16(),
        "active": mask,
    }
    if header["has_predicted"]:
        columns["predicted"] = mask
    if header.get("has_magnitude"):
        columns["magnitude"] = pa.binary()
    if header.get("feature_kind"):
        columns["feature"] = pa.binary(2 * header["feature_width"])  # little-endian float16
    return columns


def schema_problems(schema, header):
    """What differs from the format, in words."""
    want = expected_schema(header)
    problems = []
    if schema.names != list(want):
        problems.append(f"columns are {schema.names}, expected {list(want)}")
    for name, kind in want.items():
        if name not in schema.names:
            continue
        field = schema.field(name)
        if field.type != kind:
            problems.append(f"{name} has type {field.type}, expected {kind}")
        if field.nullable:
            problems.append(f"{name} is nullable")
    return problems


def popcounts(reader, header):
    """Set bits by layer, for each mask column. One batch is in memory at a time."""
    names = [n for n in ("active", "predicted") if n in reader.schema.names]
    layers = [dict({"layer": l, "rows": 0}, **{n: 0 for n in names}) for l in range(header["layers"])]
    for i in range(reader.num_record_batches):
        batch = reader.get_batch(i)
        batch.validate(full=True)
        of_layer = batch.column("layer").to_pylist()
        for l in of_layer:
            layers[l]["rows"] += 1
        for n in names:
            for l, mask in zip(of_layer, batch.column(n).to_pylist()):
                layers[l][n] += int.from_bytes(mask, "little").bit_count()
    return layers


def feature_sums(reader, header):
    """Sum of the numbers of all features by layer, or None. One batch is in memory at a time."""
    if not header.get("feature_kind"):
        return None
    sums = [0.0] * header["layers"]
    for i in range(reader.num_record_batches):
        batch = reader.get_batch(i)
        for l, feature in zip(batch.column("layer").to_pylist(), batch.column("feature").to_pylist()):
            sums[l] += sum(struct.unpack(f"<{header['feature_width']}e", feature))
    return sums


def rewrite(reader, path, batch_rows, compress):
    options = ipc.IpcWriteOptions(compression=compress)
    with ipc.new_file(path, reader.schema, options=options) as out:
        out.write_table(reader.read_all(), max_chunksize=batch_rows)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("trace")
    p.add_argument("--rewrite", metavar="PATH", help="write the rows again with pyarrow")
    p.add_argument("--batch-rows", type=int, metavar="N", help="rows per batch of the rewritten file")
    p.add_argument("--compress", choices=["zstd"], help="compression of the rewritten file (default: none)")
    args = p.parse_args()

    with pa.memory_map(args.trace) as source:
        reader = ipc.open_file(source)
        metadata = {k.decode(): v.decode() for k, v in (reader.schema.metadata or {}).items()}
        header = json.loads(metadata["windrow"])
        problems = schema_problems(reader.schema, header)
        counts = popcounts(reader, header) if not problems else []
        features = feature_sums(reader, header) if not problems else None
        json.dump(
            {
                "pyarrow": pa.__version__,
                "rows": sum(c["rows"] for c in counts),
                "batches": reader.num_record_batches,
                "columns": {f.name: {"type": str(f.type), "nullable": f.nullable} for f in reader.schema},
                "metadata": metadata,
                "layers": counts,
                "feature_sums": features,
                "problems": problems,
            },
            sys.stdout,
            indent=2,
        )
        print()
        if args.rewrite and not problems:
            rewrite(reader, args.rewrite, args.batch_rows, args.compress)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
