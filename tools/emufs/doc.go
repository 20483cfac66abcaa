// Command emufs shows an emulated flash device as a real file, so that programs that know nothing
// of windrow can measure it: a benchmark such as fio, or windrow's own probe.
//
//	cd tools/emufs && go build -o /tmp/emufs .
//	mkdir -p /tmp/emu && truncate -s 256M /dev/shm/data
//	/tmp/emufs -spec my.device.yaml -data /dev/shm/data -mount /tmp/emu &
//	fio --name=x --filename=/tmp/emu/device --ioengine=psync --thread --numjobs=16 --direct=1
//	--rw=randread --bs=16k \
//	    --runtime=5 --time_based --group_reporting
//	kill %1
//
// The directory holds one file, device, with the bytes of FILE. A read takes the time that package
// replay/emulated computes for it from the flash section of the device file. Keep FILE in memory
// (tmpfs, or read once), since the time of reading it counts where it is longer than the device's.
// An interrupt or SIGTERM unmounts and ends the program.
//
// It is a module of its own, so that the file system's dependencies stay out of the program's. It
// needs Linux, /dev/fuse, and root or fusermount3.
//
// What to know before believing a number:
//
//   - Every read costs the host about 20 µs in addition on an idle machine (to the file server and
//     back; more when several read at once), which is no part of the device: use specifications of
//     milliseconds, or describe it as costs of the engine.
//   - Reads run in parallel when they come from as many threads (ioengine=psync, one job each).
//     FUSE sends what one thread has in flight through libaio or io_uring one after the other;
//     io_uring with force_async=1 brings its own threads and is parallel again.
//   - FUSE sends reads of more than 1 MiB as several, one after the other.
//   - All opens are direct, with O_DIRECT or without. Reads must be aligned to flash.align,
//     otherwise they fail with EINVAL.
package main
