package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/document"
)

func versionCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "what this program is and was built with",
		Description: examples("windrow version", "windrow version --json"),
		Flags:       nil,
		Action: func(c *cli.Context) error {
			commit, tags := "unknown", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision":
						commit = s.Value
					case "-tags":
						tags = s.Value
					}
				}
			}
			d := &document.Document{Name: "version", Title: "windrow version",
				Headline: fmt.Sprintf("%s (commit %.12s, %s, %s/%s, kernels %s, tags %q)", Tool,
					commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, session.Kernels(),
					tags),
				Result: map[string]any{
					"version": Version, "commit": commit, "go": runtime.Version(),
					"os": runtime.GOOS, "arch": runtime.GOARCH,
					"kernels": session.Kernels(), "tags": strings.Split(tags, ","),
				}}
			t := document.NewTable(document.Text("property"), document.Text("value"))
			t.Add("version", Version)
			t.Add("commit", commit)
			t.Add("Go", runtime.Version())
			t.Add("system", runtime.GOOS+"/"+runtime.GOARCH)
			t.Add("kernels", session.Kernels())
			t.Add("tags", tags)
			d.Sections = []document.Section{{Title: "This program", Table: *t,
				Place: document.Details}}
			return e.put(c, d)
		},
	}
}
