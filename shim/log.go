package shim

import (
	"io"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

const logName = "sandbox-exec-shim"

// newLogger returns the logger that the policy asks for: JSON, one line a
// message. Without a destination it says nothing.
func newLogger(c rules.LogConfig, out *output) hclog.Logger {
	if out == nil || c.Level == "" {
		return hclog.NewNullLogger()
	}
	return newJSONLogger(hclog.LevelFromString(c.Level), out)
}

// A jsonLogger writes the lines that hclog's own logger writes with
// JSONFormat, members in the order they are given. hclog's own is not used: a
// program that holds it also holds encoding/json, colours and the plain
// format, together a tenth of the shim's file. Of an hclog.Logger it is the
// messages, With and the questions for the level; the rest does nothing.
type jsonLogger struct {
	hclog.Logger // of those that say nothing
	level        hclog.Level
	out          io.Writer
	implied      []any
}

func newJSONLogger(level hclog.Level, out io.Writer) *jsonLogger {
	return &jsonLogger{Logger: hclog.NewNullLogger(), level: level, out: out}
}

func (l *jsonLogger) Log(level hclog.Level, msg string, args ...any) {
	if level < l.level {
		return
	}
	var line jsonLine
	line.open('{')
	line.member("@level", level.String())
	line.member("@message", msg)
	line.member("@module", logName)
	line.member("@timestamp", time.Now().Format(hclog.TimeFormatJSON))
	args = slices.Concat(l.implied, args)
	for i := 0; i+1 < len(args); i += 2 {
		if key, ok := args[i].(string); ok {
			line.member(key, args[i+1])
		}
	}
	line.close('}')
	// A log that cannot be written stops no launch.
	_, _ = l.out.Write(append(line, '\n'))
}

func (l *jsonLogger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *jsonLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *jsonLogger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *jsonLogger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *jsonLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *jsonLogger) IsTrace() bool { return l.level <= hclog.Trace }
func (l *jsonLogger) IsDebug() bool { return l.level <= hclog.Debug }
func (l *jsonLogger) IsInfo() bool  { return l.level <= hclog.Info }
func (l *jsonLogger) IsWarn() bool  { return l.level <= hclog.Warn }
func (l *jsonLogger) IsError() bool { return l.level <= hclog.Error }

func (l *jsonLogger) GetLevel() hclog.Level { return l.level }

func (l *jsonLogger) With(args ...any) hclog.Logger {
	with := *l
	with.implied = slices.Concat(l.implied, args)
	return &with
}
