package output

import (
	"io"

	"github.com/hashicorp/go-hclog"
)

// A Logger is hclog's.
type Logger = hclog.Logger

// NoLog is the logger of a launch that has none.
func NoLog() Logger { return hclog.NewNullLogger() }

// NewLogger returns hclog's own JSON logger, one line a message. A log that
// cannot be written stops no launch, and a launch without one makes no logger.
// Level is a word of the policy key "log".
func NewLogger(level string, to io.Writer) Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: "sandbox-exec-shim", Level: hclog.LevelFromString(level), Output: to, JSONFormat: true,
		JSONEscapeDisabled: true, // paths as they are, as in the report
	})
}
