package record

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

// OnMissing is what a shim does without a policy variable.
type OnMissing uint8

// Pass runs the program as it is, Refuse does not run it.
const (
	Pass   OnMissing = boot.RecordMissingPass
	Refuse OnMissing = boot.RecordMissingRefuse
)

func (m OnMissing) String() string { return name(uint8(m), "pass", "refuse") }

// Argv0 is what a shim gives the program as its argv[0].
type Argv0 uint8

// Keep hands over the caller's argv[0], Real the path of the program.
const (
	Keep Argv0 = boot.RecordArgv0Keep
	Real Argv0 = boot.RecordArgv0Real
)

func (a Argv0) String() string { return name(uint8(a), "keep", "real") }

func name(v uint8, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown (%d)", v)
}

// InPlaceSuffix is what the real program of an in-place install has behind its
// name.
const InPlaceSuffix = ".shim-real"

// Record says which program a shim stands for. The zero value is not valid:
// Real is mandatory.
type Record struct {
	// Real is the absolute path of the program as PATH gives it, not what it
	// resolves to: an upgrade behind a symlink is followed.
	Real string
	// PolicyEnv names the policy variable. Empty means boot.DefaultPolicyEnv;
	// [Decode] never returns it empty.
	PolicyEnv string
	OnMissing OnMissing
	Argv0     Argv0
	// Report, Log and ProfileDir are absolute paths, or empty.
	Report     string
	Log        string
	ProfileDir string
	// InPlace says that the shim took the place of the program, which was
	// renamed to Real.
	InPlace bool
}

// Errors that [Patch], [Read] and [Decode] return, wrapped.
var (
	// ErrNoShim: the magic does not occur, the file is no shim.
	ErrNoShim = errors.New("no record block (not a shim)")
	// ErrManyBlocks: the magic occurs more than once.
	ErrManyBlocks = errors.New("more than one record block")
	// ErrBroken: the block holds a record that must not be used.
	ErrBroken = errors.New("record is damaged or of an unknown version")
	// ErrTooLong: the record does not fit into the block.
	ErrTooLong = errors.New("record is too long")
)

// Validate reports what a record may not hold: a path that is not absolute or
// not clean (as path.Clean leaves it), a name that cannot be that of a
// variable, a NUL, an unknown choice.
func (r Record) Validate() error {
	if r.Real == "" {
		return errors.New("real path is empty")
	}
	for _, p := range []struct{ what, path string }{
		{"real path", r.Real}, {"report", r.Report}, {"log", r.Log}, {"profile directory", r.ProfileDir},
	} {
		if p.path == "" {
			continue
		}
		if err := validatePath(p.path); err != nil {
			return fmt.Errorf("%s %q: %w", p.what, p.path, err)
		}
	}
	if r.Real == "/" {
		return fmt.Errorf("real path %q: is a directory", r.Real)
	}
	if strings.ContainsAny(r.PolicyEnv, "=\x00") {
		return fmt.Errorf("policy variable %q: a name holds no \"=\" and no NUL", r.PolicyEnv)
	}
	if r.OnMissing > Refuse {
		return fmt.Errorf("on missing policy: %v", r.OnMissing)
	}
	if r.Argv0 > Real {
		return fmt.Errorf("argv0: %v", r.Argv0)
	}
	return nil
}

func validatePath(p string) error {
	switch {
	case strings.IndexByte(p, 0) >= 0:
		return errors.New("holds a NUL")
	case !path.IsAbs(p):
		return errors.New("is not absolute")
	case path.Clean(p) != p:
		return fmt.Errorf("is not clean (%q)", path.Clean(p))
	}
	return nil
}
