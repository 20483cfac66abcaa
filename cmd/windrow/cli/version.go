package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/kernels/cpu"
)

func versionCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "what this program is and was built with",
		Description: examples("windrow version", "windrow version --json"),
		Flags:       []cli.Flag{jsonFlag()},
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
			if c.Bool("json") {
				return printJSON(e.stdout, map[string]any{
					"version": Version, "commit": commit, "go": runtime.Version(),
					"os": runtime.GOOS, "arch": runtime.GOARCH,
					"kernels": cpu.Features(), "tags": strings.Split(tags, ","),
				})
			}
			fmt.Fprintf(e.stdout, "%s (commit %.12s, %s, %s/%s, kernels %s, tags %q)\n", Tool,
				commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, cpu.Features(), tags)
			return nil
		},
	}
}
