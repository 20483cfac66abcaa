package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Config says what to open.
type Config struct {
	Model string // path of a flash image
	// Backend computes: "cpu" (or empty), a name that Device knows, or "auto": a device where there
	// is one, else the CPU.
	Backend string
	// DeviceMemory is the most that a device's memory is used; 0 = all of it.
	DeviceMemory units.Bytes
	// Device opens a device for the weights of a model. An error of kind refusal.ErrHost says that
	// this machine has none.
	Device func(name string, w *model.Weights, memory units.Bytes) (Device, error)
	Tell   tell.Tell
}

// Device is a Backend that keeps rows too, with a name.
type Device interface {
	engine.Backend
	engine.Store
	Name() string
	Bytes() units.Bytes // of weights on it
	Close() error
}

// backends are the values of Config.Backend.
func backends() []string { return []string{"cpu", "cuda", "metal", "auto"} }

// Check refuses a backend that there is not, and device memory for the CPU.
func (c *Config) Check() error {
	cpu := c.Backend == "" || c.Backend == "cpu"
	switch {
	case cpu && c.DeviceMemory != 0:
		return refusal.Config("{DeviceMemory} %v: the CPU computes in main memory, which {DRAM} "+
			"is for; add {Backend} cuda, or leave it out", c.DeviceMemory)
	case c.DeviceMemory < 0:
		return refusal.Config("{DeviceMemory} %v: a size (8GiB) is wanted", c.DeviceMemory)
	case !cpu && !slices.Contains(backends(), c.Backend):
		return refusal.Config("{Backend} %q: it is cpu, cuda, metal or auto", c.Backend)
	}
	return nil
}

// Session is an open model. Close it after the engines and rows made of it.
type Session struct {
	Image   *model.Image
	Weights *model.Weights
	// Tokenizer is nil when the image has none.
	Tokenizer *tokenizer.Tokenizer
	// Device computes and keeps rows; nil = the CPU.
	Device Device

	cfg       Config
	collected *int // the garbage collector's percentage before KeepWithin
}

// Open opens an image, to be read until the context ends, with its resident weights and, when it
// has one, its tokenizer. It puts the weights on the device of the configuration.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(cfg.Model); err == nil && info.IsDir() {
		return nil, refusal.Input("%s is a folder; make a flash image of it first: windrow pack "+
			"%s -o MODEL.flash.safetensors", cfg.Model, cfg.Model)
	}
	image, err := model.OpenImage(ctx, cfg.Model)
	if err != nil {
		return nil, err
	}
	s := &Session{Image: image, cfg: cfg}
	if err := s.open(ctx); err != nil {
		image.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(ctx context.Context) (err error) {
	if s.Weights, err = s.Image.Weights(ctx); err != nil {
		return err
	}
	if len(s.Image.TokenizerJSON) > 0 {
		if s.Tokenizer, err = tokenizer.Parse(s.Image.TokenizerJSON); err != nil {
			return fmt.Errorf("%s: tokenizer: %w", s.cfg.Model, err)
		}
	}
	return s.openDevice()
}

// openDevice puts the resident weights where Config.Backend wants them.
func (s *Session) openDevice() error {
	if s.cfg.Backend == "" || s.cfg.Backend == "cpu" {
		return nil
	}
	d, err := s.cfg.Device(s.cfg.Backend, s.Weights, s.cfg.DeviceMemory)
	if s.cfg.Backend == "auto" && errors.Is(err, refusal.ErrHost) {
		s.Note("note: computing on the CPU: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	s.Device = d
	s.Note("%s: %v of weights on %s", s.Image.Name, d.Bytes(), d.Name())
	return nil
}

// KeepWithin prepares the process for a run of a given memory, until Close. It returns the garbage
// of opening the model to the system. During the run garbage is collected before it exceeds 3 % of
// the account, or 4 MiB for a small account. Go's default would let the heap double.
func (s *Session) KeepWithin(account units.Bytes) {
	const slack, least = 3, 4 * units.MiB
	percent := min(max(int(100*least/max(account, 1)), slack), 100)
	if before := debug.SetGCPercent(percent); s.collected == nil {
		s.collected = &before
	}
	debug.FreeOSMemory()
}

// Close gives back the device and closes the image.
func (s *Session) Close() {
	s.Image.Close()
	if s.collected != nil {
		debug.SetGCPercent(*s.collected)
	}
	if s.Device != nil {
		// What was computed is right, and the end of the program gives the device back too.
		_ = s.Device.Close()
	}
}

// Note tells a remark, as tell.Tell does.
func (s *Session) Note(format string, args ...any) { s.cfg.Tell.Notef(format, args...) }

// Backend is the device as a Backend; nil for the CPU.
func (s *Session) Backend() engine.Backend {
	if s.Device == nil {
		return nil
	}
	return s.Device
}

// Store is the device as a Store; nil for the CPU.
func (s *Session) Store() engine.Store {
	if s.Device == nil {
		return nil
	}
	return s.Device
}

// Refused is an error of an engine that was asked for more than it can do: the configuration's
// fault on the CPU. On a device it may be the device's and keeps its kind.
func (s *Session) Refused(err error) error {
	if s.Device != nil {
		return err
	}
	return refusal.Config("%v", err)
}

// Text returns the tokenizer or says why there is none.
func (s *Session) Text() (*tokenizer.Tokenizer, error) {
	if s.Tokenizer == nil {
		return nil, refusal.Config("%s holds no tokenizer (a synthetic model has none): it "+
			"cannot read text; use replay with a trace", s.Image.Path)
	}
	return s.Tokenizer, nil
}

// Encode returns the tokens of a text. With noBOS they are those of the text alone, without the
// token that begins texts.
func (s *Session) Encode(text string, noBOS bool) ([]uint32, error) {
	tok, err := s.Text()
	if err != nil {
		return nil, err
	}
	if !noBOS {
		return tok.Encode(text), nil
	}
	ids := tok.EncodePlain(text)
	if len(ids) == 0 {
		return nil, refusal.Config("{NoBOS}: a text of no tokens; there is nothing to begin with")
	}
	return ids, nil
}

// Decode is the text of ids as a stream shows it.
func (s *Session) Decode(ids []uint32) string {
	stream := s.Tokenizer.NewStream()
	stream.SkipControl = true
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(stream.Next(id))
	}
	b.WriteString(stream.Flush())
	return b.String()
}

// RoomFor refuses a generation that the model's context cannot hold: the last new token needs no
// position of its own.
func (s *Session) RoomFor(prompt, tokens int) error {
	if limit := s.Weights.Shape.MaxPos; tokens > limit || prompt+max(tokens-1, 0) > limit {
		return refusal.Config("%d prompt tokens and %d new ones do not fit into the model's "+
			"context of %d; ask for fewer with {N}", prompt, tokens, limit)
	}
	return nil
}

// Bundles reads one layer's bundles.
func (s *Session) Bundles(layer int) ([]byte, error) {
	data := make([]byte, s.Image.LayerBytes())
	return data, s.Image.Bundles(layer, data)
}

// Resident loads all rows into memory: the dense engine.
func (s *Session) Resident() (*engine.Resident, error) {
	bundles := make([][]byte, s.Image.Shape.Layers)
	for l := range bundles {
		var err error
		if bundles[l], err = s.Bundles(l); err != nil {
			return nil, err
		}
	}
	return engine.NewResident(s.Weights, bundles, s.Image.Geometry())
}

// Kernels names the processor's extensions that the engine's kernels use.
func Kernels() string { return cpu.Features() }

// MaxInput is the default of the largest text that is read.
const MaxInput = 64 * units.MiB

// ReadText reads a text file of at most limit bytes, without its byte order mark; limit 0 =
// MaxInput.
func ReadText(ctx context.Context, path string, limit units.Bytes) (string, error) {
	if limit == 0 {
		limit = MaxInput
	}
	data, err := input.ReadText(ctx, path, input.Limit{Most: limit, Field: "MaxInput"})
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", refusal.Input("%s is not a text file", path)
	}
	return string(data), nil
}

// ReadPrompts reads one prompt per line of a text file, as ReadText does, and returns the first n
// of them; 0 = all. Blank lines are skipped.
func ReadPrompts(ctx context.Context, path string, limit units.Bytes, n int) ([]string, error) {
	text, err := ReadText(ctx, path, limit)
	if err != nil {
		return nil, err
	}
	var prompts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && (n == 0 || len(prompts) < n) {
			prompts = append(prompts, line)
		}
	}
	if len(prompts) == 0 {
		return nil, refusal.Input("%s holds no prompts; write one per line", path)
	}
	return prompts, nil
}
