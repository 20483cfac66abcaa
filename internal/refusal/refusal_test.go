package refusal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A sentinel is of its kind and of no other, through any wrapping.
func TestKind(t *testing.T) {
	own, other := Kind(ErrInput, "bad format"), Kind(ErrInput, "bad format")
	err := fmt.Errorf("a file: %w", own)
	if !errors.Is(err, own) || !errors.Is(err, ErrInput) || errors.Is(err, ErrConfig) ||
		errors.Is(err, other) || err.Error() != "a file: bad format" {
		t.Errorf("%v", err)
	}
}

// Fields are renamed wherever a refusal is in the tree of an error; what users typed is not.
func TestText(t *testing.T) {
	flag := func(field string) string { return "--" + strings.ToLower(field) + "%" }
	odd := Config("{Model} %q: {N} is not it", "{Model}")
	for _, c := range []struct {
		err        error
		kind       error
		text, flag string
	}{
		{odd, ErrConfig, `Model "{Model}": N is not it`, `--model% "{Model}": --n% is not it`},
		{fmt.Errorf("a: %w", odd), ErrConfig, `a: Model "{Model}": N is not it`,
			`a: --model% "{Model}": --n% is not it`},
		{errors.Join(io.EOF, Input("%s has no {Tokens}", "x"), odd), ErrInput,
			"EOF\nx has no Tokens\nModel \"{Model}\": N is not it",
			"EOF\nx has no --tokens%\n--model% \"{Model}\": --n% is not it"},
		{Config("open { stays %d", 3), ErrConfig, "open { stays 3", "open { stays 3"},
		{Input("b: %v", odd), ErrInput, `b: Model "{Model}": N is not it`,
			`b: --model% "{Model}": --n% is not it`},
		{io.EOF, io.EOF, "EOF", "EOF"},
	} {
		if got := Text(c.err, flag); got != c.flag || c.err.Error() != c.text ||
			!errors.Is(c.err, c.kind) {
			t.Errorf("%q, want %q; with flags %q, want %q", c.err, c.text, got, c.flag)
		}
	}
	if errors.Is(odd, ErrInput) {
		t.Error("a refused configuration is taken for a bad file")
	}
}
