package fio

import (
	"bytes"
	"fmt"
	"regexp"
)

// The tools whose results are read.
const (
	toolFio      = "fio"
	toolElbencho = "elbencho"
)

// runFio are the commands that measure what a fit needs.
const runFio = "windrow device fio-job --file FILE > device.fio; fio --readonly " +
	"--output-format=json+ --output=device.json device.fio"

// asJSON is the remedy for outputs of fio of another form.
const asJSON = "let fio write its JSON: fio --output-format=json+ --output=FILE …"

// foreignTool is a storage test, or a form of fio's output, that is not read.
type foreignTool struct {
	name string
	mark *regexp.Regexp // a line of it
	why  string
	// what to do; "" = runFio
	remedy string
}

const (
	rowOnly  = "it reads one block after the other, at rising offsets"
	noDepths = "it has not what a fit needs: sizes, depths and rates of direct random reads"
)

func line1(text string) *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*` + text) }

// foreignTools are in the order in which they are tried.
var foreignTools = []foreignTool{
	{"the terse output of fio", line1(`[2-6];(fio|[A-Za-z0-9_-]+;)`), "it lacks the options of " +
		"the jobs", asJSON},
	{"a job file of fio", line1(`\[global\]\s*$`), "it holds no measurement", "run it: fio " +
		"--readonly --output-format=json+ --output=device.json JOBFILE"},
	{"the normal output of fio", line1(`\S.*: \(groupid=\d+, jobs=\d+\)|\S.*: \(g=\d+\): rw=`),
		"it is for people", asJSON},
	{"an output of fio's histogram log", line1(`\d+, [01], \d+, (\d+, ){64}`), "it has no rates",
		asJSON},
	{"elbencho's live statistics", line1(`ISO date,Label,Phase,`), "it holds no end result",
		"run elbencho with --csvfile FILE or --jsonfile FILE"},
	{"elbencho's result file", line1(`OPERATION\s+RESULT TYPE\s+FIRST DONE`),
		"it lacks block sizes and depths", "run elbencho with --csvfile FILE or --jsonfile FILE"},
	{"an output of ioping", line1(`--- .* ioping statistics ---|\S+ \S+ <<< `),
		"it has one read in flight alone", ""},
	{"an output of sysbench", line1(`sysbench \d`), noDepths, ""},
	{"an output of dd", line1(`\d+\+\d+ records (in|out)|\d+ bytes .*copied, `), rowOnly, ""},
	{"an output of hdparm", line1(`Timing (cached|buffered disk|O_DIRECT) `), rowOnly, ""},
	{"an output of bonnie++", line1(`Version\s+\S+\s+-+Sequential Output|1\.9\d,\d\.\d`), rowOnly,
		""},
	{"an output of IOzone", line1(`Iozone: Performance Test|"Writer report"|.*KB\s+reclen\s+write`),
		noDepths, ""},
	{"an output of vdbench", line1(`(\S+ )?Vdbench (distribution|summary)|.*Vdbench\d+`), noDepths,
		""},
	{"an output of DiskSpd", line1(`Command Line: .*diskspd|<Results>\s*<System>`), noDepths, ""},
	{"an output of IOR", line1(`IOR-\d.*MPI`), noDepths, ""},
	{"an output of mdtest", line1(`mdtest-\d`), "it measures files, not reads", ""},
	{"an output of Iometer", line1(`'?Test Type,Test Description`), noDepths, ""},
	{"an output of ATTO", line1(`ATTO Disk Benchmark|.*<benchmark[^>]*ATTO`), rowOnly, ""},
	{"an output of AS SSD", line1(`AS SSD Benchmark`), noDepths, ""},
	{"an output of Filebench", line1(`Filebench Version`), noDepths, ""},
	{"an output of SPDK's perf", line1(`Device Information\s*:\s*IOPS`), noDepths, ""},
	{"an output of gdsio", line1(`IoType: \S+ XferType:`), "it reads into the memory of a GPU", ""},
	{"an output of yabs.sh", line1(`.*Yet-Another-Bench-Script|fio Disk Speed Tests`), noDepths,
		""},
	{"an output of stress-ng", line1(`stress-ng: `), noDepths, ""},
	{"an output of iostat", line1(`avg-cpu:\s+%user`), "it counts what others read", ""},
}

// foreign names the tool whose output the text is, the reason why it is not read and what to run
// instead; "" for a text that it does not know.
func foreign(text []byte) string {
	const head = 64 << 10
	text = text[:min(len(text), head)]
	for i := range foreignTools {
		t := &foreignTools[i]
		if !t.mark.Match(text) {
			continue
		}
		remedy := t.remedy
		if remedy == "" {
			remedy = "measure with fio instead: " + runFio
		}
		return fmt.Sprintf("is %s, which is not read: %s; %s", t.name, t.why, remedy)
	}
	return ""
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text []byte) []byte {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line
		}
	}
	return nil
}
