package cli

import (
	"os"
	"strings"
	"testing"
)

// TestEdgesOfFlags: a value at the edge of its range is taken or refused as a fault of the command
// line, by the name of its flag and with the range; nothing is set and then not used.
func TestEdgesOfFlags(t *testing.T) {
	trainWorkspace(t)
	for name, text := range map[string]string{"edge.txt": "Once upon a time in a land",
		"two.txt": "Once\nTwo\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		generate = "generate -m tales.flash.safetensors -n 2 "
		record   = "record -m tales.flash.safetensors --prompts two.txt -n 1 -o e.trace.arrow " +
			"--force "
		eval = "eval -m tales.flash.safetensors --text edge.txt "
	)
	for _, c := range []struct{ line, want string }{ // want: of the refusal; "" = taken
		{generate + "--temp 1 --top-p 0 Once", "--top-p 0: it must be above 0; 1 is none"},
		{generate + "--temp 1 --top-p 1 --min-p 1 --top-k 999999999 Once", ""},
		{generate + "--temp inf Once", "--temp +Inf: it must be a finite number and not below 0"},
		{generate + "--top-p 1.5 Once", "--top-p 1.5: it must lie between 0 and 1"},
		{generate + "--min-p 1.5 Once", "--min-p 1.5: it must lie between 0 and 1"},
		{generate + "--repeat-penalty 0 Once", "--repeat-penalty 0: it must be above 0"},
		{generate + "--top-k inf Once", "invalid value"},
		{generate + "--stop= Once", `--stop "": every text holds the empty one`},
		{generate + "--prefill-chunk 4096 Once", ""},
		{generate + "--prefill-chunk 4097 Once", "--prefill-chunk 4097: 1 to 4096 tokens"},
		{generate + "--prompts two.txt --batch 2 --prefill-chunk 4096", "4097 tokens in a step: " +
			"at most 4096 are possible; use a smaller --batch or --prefill-chunk"},
		{generate + "--batch 2 Once", "--batch goes with --prompts"},
		{generate + "--lambda 2 Once", "--lambda goes with --draft"},
		{generate + "--check-masks Once", "--check-masks goes with --predictor"},
		{generate + "--sequence 1 Once", "--sequence goes with --oracle"},
		{generate + "--window 2 Once", "--window goes with --oracle or --predictor"},
		{generate + "--dram 50% Once", "--dram goes with --oracle or --predictor"},
		{generate + "--dense-prefix 1 Once", "--dense-prefix goes with --predictor"},
		{generate + "--draft tales.flash.safetensors --lambda 0 Once", "--lambda 0: 1 to 4095"},
		{generate + "--draft tales.flash.safetensors --lambda 4096 Once", "--lambda 4096: 1 to"},
		{generate + "--draft tales.flash.safetensors --lambda 4095 Once", ""},
		{generate + "--oracle tales.trace.arrow --sequence 99", "--sequence 99: the trace has no " +
			"such sequence with a prompt; its sequences are 0 to"},
		{record + "--top-p 0", "--top-p 0: it must be above 0"},
		{record + "--compress gzip", "--compress gzip: none and zstd are known"},
		{record + "--prefill-chunk 4097", "--prefill-chunk 4097: 1 to 4096 tokens"},
		{eval + "--prefill-chunk 4097", "--prefill-chunk 4097: 1 to 4096 tokens"},
		{eval + "--context 1", "--context 1, --stride 1: a context of 2 tokens or more"},
		{eval + "--context 4 --stride 5", "--context 4, --stride 5: a context of"},
		{eval + "--context 2", ""},
		{eval + "--max-tokens 1", "give more text, or a larger --max-tokens"},
		{"pack examples/models/tales -o e.flash.safetensors " +
			"--record-stride 1B",
			"--record-stride 1B: a multiple of 2 bytes from the record's 1KiB to 64MiB is needed"},
	} {
		o := command(words(t, c.line)...)
		want := exitOK
		if c.want != "" {
			want = exitUsage
		}
		if o.code != want || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%s: exit %d, want %d with %q\n%s", c.line, o.code, want, c.want, o.stderr)
		}
	}
	// What has no effect is said; what is refused is not called a mismatch of files.
	for line, want := range map[string]bool{"--temp 0 --top-k 5 Once": true,
		"--temp 1 --top-k 5 Once": false} {
		o := command(words(t, generate+line)...)
		if said := strings.Contains(o.stderr, "--top-k has no effect"); o.code != exitOK ||
			said != want {
			t.Errorf("%s: exit %d\n%s", line, o.code, o.stderr)
		}
	}
	o := command(words(t, "replay -m tales.flash.safetensors -t tales.trace.arrow --io pread "+
		"--policy belady:0")...)
	if o.code != exitUsage || strings.Contains(o.stderr, "belong together") {
		t.Errorf("a policy that cannot be replayed: exit %d\n%s", o.code, o.stderr)
	}
}
