package traces

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The environment variable makes this test binary the child of GuardedCheck.
const childEnv = "WINDROW_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "check":
		if err := ServeCheck(context.Background(), os.Args[1], os.Stdout); err != nil {
			os.Exit(1)
		}
	case "greedy":
		err := ServeCheck(context.Background(), os.Args[1], os.Stderr) // sets the limit
		hog := make([]byte, 16<<30)
		hog[len(hog)-1] = 1
		_ = err
		os.Stdout.WriteString("{}")
	case "panic":
		panic("as the Arrow library does")
	case "hang":
		select {}
	}
	os.Exit(0)
}

func TestCheckFileCounts(t *testing.T) {
	src := testTrace(13, true)
	path := save(t, src, WriteOptions{BatchBytes: 1})
	rep, err := CheckFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var active, predicted int64
	for _, tok := range src.List {
		for l := range tok.Active {
			for u := range src.Head.Units { // bit by bit, not by the function under test
				active += int64(tok.Active[l][u/64] >> (u % 64) & 1)
				predicted += int64(tok.Predicted[l][u/64] >> (u % 64) & 1)
			}
		}
	}
	equal(t, "report", Report{
		Path: path, Bytes: rep.Bytes, SHA256: rep.SHA256, Verified: true, Complete: true,
		Header: src.Head, Tokens: 13,
		Prefill: 6, Sequences: 3, Rows: 39, Batches: 13, Compress: "none", Active: active,
		Predicted: predicted,
	}, rep)
}

func TestCheckFileReadsEveryRow(t *testing.T) {
	path := writeForeign(t, foreign{edit: func(v map[string][]any) { v["layer"][2] = 7 }})
	if _, err := Open(t.Context(), path); err != nil {
		t.Fatalf("Open reads no rows, but: %v", err)
	}
	if _, err := CheckFile(t.Context(), path); !errors.Is(err, ErrFormat) {
		t.Errorf("want ErrFormat, got %v", err)
	}
}

func TestField_A1_GuardedCheck(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good := save(t, testTrace(3, false), WriteOptions{})
	guard := func(mode, path string) (Report, error) {
		t.Setenv(childEnv, mode)
		return GuardedCheck(context.Background(), path, []string{exe, path})
	}
	want, err := CheckFile(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	got, err := guard("check", good)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "report", want, got)

	bad := filepath.Join(t.TempDir(), "bad.trace.arrow")
	if err := os.WriteFile(bad, []byte("ARROW1 and nothing else, ARROW1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := guard("check", bad); !errors.Is(err, ErrFormat) || strings.Count(err.Error(),
		ErrFormat.Error()) != 1 {
		t.Errorf("want one ErrFormat, got %v", err)
	}
	lz4 := writeForeign(t, foreign{head: func(h *Header) { h.SchemaVersion = "9.0" }})
	if _, err := guard("check", lz4); !errors.Is(err, ErrUnsupported) || errors.Is(err, ErrFormat) {
		t.Errorf("want ErrUnsupported, got %v", err)
	}
	if _, err := guard("panic", good); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
		"as the Arrow library does") {
		t.Errorf("a child that panics: want ErrFormat with its words, got %v", err)
	}
	if _, err := GuardedCheck(context.Background(), good, []string{filepath.Join(t.TempDir(),
		"none")}); err == nil || errors.Is(err, ErrFormat) {
		t.Errorf("a child that cannot start says nothing about the file, got %v", err)
	}
	if _, err := GuardedCheck(context.Background(), good, nil); err == nil {
		t.Error("no command: no error")
	}
}

func TestField_A1_GuardStopsGreedyChild(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("the limit is on address space: Linux only, and the race detector reserves " +
			"terabytes")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := save(t, testTrace(1, false), WriteOptions{})
	t.Setenv(childEnv, "greedy")
	if _, err := GuardedCheck(context.Background(), path, []string{exe, path}); !errors.Is(err,
		ErrFormat) {
		t.Errorf("want ErrFormat, got %v", err)
	}
}

func TestGuardedCheckEndsWithItsContext(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := save(t, testTrace(1, false), WriteOptions{})
	t.Setenv(childEnv, "hang")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := GuardedCheck(ctx, path, []string{exe, path}); !errors.Is(err, context.Canceled) {
		t.Errorf("want Canceled, got %v", err)
	}
}
