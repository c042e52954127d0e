package place

import (
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
)

// A kind is what stands under a name.
type kind uint8

const (
	nothing kind = iota
	aShim
	other // anything else: a program, a symbolic link, a directory
)

// An entry is one name of a directory.
type entry struct {
	kind       kind
	st         unix.Stat_t // of the name itself; zero with kind nothing
	shims.File             // without Path
}

// look says what stands under a name.
func (d *directory) look(name string) (entry, error) {
	st, ok, err := d.lstat(name)
	if err != nil || !ok {
		return entry{}, err
	}
	e := entry{kind: other, st: st}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return e, nil
	}
	if e.File, err = shims.Look(d.fd, name, unix.O_NOFOLLOW); err != nil {
		return e, voice.Refused(d.join(name), "%w", err)
	}
	if e.IsShim {
		e.kind = aShim
	}
	return e, nil
}

// A site is one name with all that an install puts around it.
type site struct {
	dir  *directory
	name string
	at   entry // the name
	real entry // the sibling
}

func (d *directory) inspect(name string) (s *site, err error) {
	s = &site{dir: d, name: name}
	if s.at, err = d.look(name); err == nil {
		s.real, err = d.look(s.sibling())
	}
	return s, err
}

// stamp is how the build writes the version into the shim. A shim reads no
// flag, so it cannot be asked.
var stamp = regexp.MustCompile(`sandbox-exec-shim-version=([0-9A-Za-z.+-]{1,64});`)

// version returns that of the shim at the name, "" when its binary does not tell.
func (s *site) version() string {
	if m := stamp.FindSubmatch(s.at.Data); m != nil {
		return string(m[1])
	}
	return ""
}

func (s *site) path() string    { return s.dir.join(s.name) }
func (s *site) sibling() string { return s.name + shims.Suffix }

// is reports whether the very shim that is to be installed stands here.
func (s *site) is(src shims.File) bool {
	id, ok := shims.IDAt(src.Path)
	return ok && s.at.kind == aShim && shims.ID(&s.at.st) == id
}

// inDir reports whether a shim stands here that was installed in front of a
// program elsewhere.
func (s *site) inDir() bool { return s.at.Recorded && !s.at.Record.InPlace }

// inPlace reports whether a shim stands here in the place of a program. A
// damaged record does not hide that: the sibling shows it.
func (s *site) inPlace() bool {
	return s.at.Recorded && s.at.Record.InPlace || s.at.RecordErr != nil && s.real.kind == other
}

// neverInstalled reports whether a shim without any record stands here.
func (s *site) neverInstalled() bool { return s.at.IsShim && !s.at.Recorded && s.at.RecordErr == nil }

// A phase is how far an in-place install has come, or what has become of it.
type phase uint8

const (
	fresh      phase = iota // a program, never touched
	unfinished              // a program; what an interrupted install left stands beside it
	replaced                // a program that came after the install, the older one beside it
	installed               // a shim, the program beside it
	orphaned                // a shim without a program beside it
	vanished                // the name is gone, the program stands beside it
	absent                  // neither
)

func (s *site) phase() phase {
	switch {
	case s.at.kind == aShim && s.real.kind == other:
		return installed
	case s.at.kind == aShim:
		return orphaned
	case s.at.kind == other && s.real.kind == nothing:
		return fresh
	case s.at.kind == other && s.real.kind == aShim:
		return unfinished
	case s.at.kind == other && shims.ID(&s.at.st) == shims.ID(&s.real.st):
		return unfinished
	case s.at.kind == other:
		return replaced
	case s.real.kind == other:
		return vanished
	default:
		return absent
	}
}

// checkName says why a name cannot be that of a shim.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return voice.Refused(name, "is not a file name")
	case strings.Contains(name, "/"):
		return voice.Hinted(voice.Refused(name, "is a path, not a name"), "the directory goes to --dir; to replace a file itself use --in-place")
	case strings.ContainsRune(name, 0):
		return voice.Refused(name, "holds a NUL")
	case strings.HasSuffix(name, shims.Suffix):
		return voice.Refused(name, "is the name of a real program behind an in-place shim")
	}
	return nil
}
