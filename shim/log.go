package shim

import (
	"io"

	"github.com/hashicorp/go-hclog"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// newLogger returns the logger that the policy asks for: JSON, one line a
// message. Without a destination it says nothing.
func newLogger(c rules.LogConfig, out *output) hclog.Logger {
	if out == nil || c.Level == "" {
		return hclog.NewNullLogger()
	}
	return hclog.New(&hclog.LoggerOptions{
		Name: "sandbox-exec-shim", Level: hclog.LevelFromString(c.Level), Output: io.Writer(out), JSONFormat: true,
	})
}
