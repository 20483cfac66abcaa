#!/usr/bin/env bash
# make.sh [DIR]: run fio and keep what it prints as fixtures of devicemodels/fio, one file for every
# form of its output, in DIR/fio-VERSION (DIR is devicemodels/fio/testdata/real unless given).
#
# FIO names the program (default: fio). The fixtures were made with fio 3.33 as Debian 12 has it, and
# with fio 3.42 built from source (./configure && make). The numbers differ in every run and on every
# machine; the tests look at forms, and at numbers that must agree within one file. Takes 20 seconds.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
fio=$(command -v "${FIO:-fio}")
out=${1:-$here/devicemodels/fio/testdata/real}/$("$fio" --version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
cd "$work"
"$fio" --name=fill --filename=data.bin --size=16m --rw=write --bs=1m --end_fsync=1 >/dev/null

# what all jobs have; two percentiles keep the files small
cat >head <<'EOF'
[global]
filename=data.bin
size=16m
direct=1
rw=randread
bs=4k
time_based=1
runtime=300ms
percentile_list=50:99
EOF

# run NAME [OPTION…]: run the sections on the standard input
run() {
	local name=$1
	shift
	cat head - >"$name.fio"
	"$fio" --output-format=json "$@" --output="$out/$name.json" "$name.fio" >/dev/null
}

run grouped <<'EOF'
group_reporting=1
[threads]
numjobs=2
ioengine=psync
[ring]
stonewall
ioengine=libaio
iodepth=4
EOF

run ungrouped <<'EOF'
runtime=1s
[two]
numjobs=2
ioengine=libaio
iodepth=2
EOF

run no-percentiles <<'EOF'
clat_percentiles=0
disable_slat=1
[r]
ioengine=libaio
iodepth=2
EOF

run lat-histogram --output-format=json+ <<'EOF'
lat_percentiles=1
[r]
ioengine=psync
EOF

run mixed <<'EOF'
unified_rw_reporting=both
[m]
rw=randrw
rwmixread=70
ioengine=libaio
iodepth=2
EOF

# every one is random by rw alone, or limited, or its depth is not iodepth
run doubtful <<'EOF'
runtime=120ms
ioengine=libaio
iodepth=4
stonewall
[percentage]
percentage_random=0
[runs]
rw=randread:8
[zipf]
random_distribution=zipf:1.2
[zoned]
random_distribution=zoned:60/10:40/90
[rated]
rate_iops=200
[batch]
iodepth_batch_complete_min=4
EOF

run steady <<'EOF'
runtime=3s
[s]
ioengine=psync
steadystate=iops:0.01%
steadystate_duration=2
EOF

# groups that are not one after the other
run new-group <<'EOF'
[one]
ioengine=psync
[two]
new_group
ioengine=psync
EOF

run start-delay <<'EOF'
[now]
ioengine=psync
[later]
startdelay=1
ioengine=psync
EOF

# KDiskMark's command line
"$fio" --output-format=json --ioengine=libaio --randrepeat=0 --refill_buffers=1 --end_fsync=1 \
	--direct=1 --rwmixread=70 --filename=data.bin --name=randread --size=16m --zero_buffers=0 \
	--bs=4k --runtime=1 --rw=randread --iodepth=32 --numjobs=1 --group_reporting \
	>"$out/kdiskmark.json"

# several reports: on a terminal with a progress bar, to a pipe, and of a client
job=(--name=r --filename=data.bin --size=16m --direct=1 --rw=randread --bs=4k --ioengine=psync
	--time_based --runtime=2 --percentile_list=50:99)
"$fio" --output-format=json --status-interval=1 "${job[@]}" >"$out/status.out" 2>&1
"$fio" --output-format=normal,json --eta=always "${job[@]}" >"$out/progress.out" 2>&1
cat head - >client.fio <<'EOF'
runtime=1100ms
[c]
numjobs=2
ioengine=psync
[d]
stonewall
ioengine=psync
EOF
"$fio" --server=127.0.0.1,18765 >server.log 2>&1 &
server=$!
sleep 1
"$fio" --client=127.0.0.1,18765 client.fio --output-format=json --status-interval=1 \
	>"$out/client-status.out" 2>&1 || true
kill -INT "$server" 2>/dev/null || true
wait "$server" 2>/dev/null || true

# logs: means of 100 ms, and every request
"$fio" "${job[@]}" --log_avg_msec=100 --write_bw_log=mean >/dev/null
cp mean_bw.1.log "$out/mean_bw.1.log"
"$fio" "${job[@]}" --runtime=600ms --rate_iops=500 --write_bw_log=each --write_iops_log=each \
	--write_lat_log=each >/dev/null
cp each_bw.1.log each_lat.1.log "$out/"
"$fio" "${job[@]}" --runtime=300ms --minimal >"$out/terse.out"
"$fio" "${job[@]}" --runtime=300ms >"$out/normal.out"
echo "$out"
