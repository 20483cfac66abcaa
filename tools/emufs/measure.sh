#!/bin/sh
# Measures an emulated device with fio, through FUSE, as root: measure.sh WINDROW EMUFS SPEC OUTPUT.json
set -eu
windrow=$1 emufs=$2 spec=$3 output=$4
dir=$(mktemp -d)
mkdir "$dir/mount"
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$dir"' EXIT
# Only the pace is measured, so holes do for data.
truncate -s 80M "$dir/data"
"$emufs" -spec "$spec" -data "$dir/data" -mount "$dir/mount" &
server=$!
until [ -e "$dir/mount/device" ]; do
	kill -0 "$server" # it has failed, and said why
	sleep 0.1
done
"$windrow" device fio-job --file "$dir/mount/device" --size 80MiB --chunks 4KiB,16KiB,64KiB --depths 1,4,16,64 \
	--engines psync --runtime 4s >"$dir/grid.fio"
fio --readonly --output-format=json+ --output="$output" "$dir/grid.fio"
