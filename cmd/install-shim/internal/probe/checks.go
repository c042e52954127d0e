package probe

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// A check is one try with what is expected of it.
type check struct {
	// Name is the key under which the result is known. Several checks may
	// share one.
	Name string `json:"name"`
	Op   string `json:"operation"`
	// Way says how the path was reached: "" for directly.
	Way  string `json:"way,omitempty"`
	Path string `json:"path"`
	// Expected is "allowed", "denied", or "" for what is only recorded.
	Expected string `json:"expected,omitempty"`
	Result   string `json:"result"`
	Errno    string `json:"errno,omitempty"`
	// Outside is what the same try gave without the shim, "" if it was not
	// made there.
	Outside string `json:"outside,omitempty"`
	OK      bool   `json:"ok"`

	try  try
	file *os.File // for try.FD
}

const (
	allowed = "allowed"
	denied  = "denied"
)

// A set collects checks and makes the control of each at once: the same
// try, here, where nothing is confined.
type set struct {
	stage  *stage
	prefix string
	checks []*check
	links  int
}

func (s *set) add(name, expected, way string, t try) *check {
	c := &check{Name: s.prefix + name, Op: string(t.Op), Way: way, Path: t.Path, Expected: expected, try: t}
	switch t.Op {
	case opCreate:
		// What may be hidden is not written to, not even for a moment.
		c.Outside = outcomeOf(unix.Faccessat(unix.AT_FDCWD, path.Dir(t.Path), unix.W_OK|unix.X_OK, unix.AT_EACCESS)).String()
	case opUse, opAppend:
	default:
		c.Outside = t.make().String()
	}
	s.checks = append(s.checks, c)
	return c
}

// everyWay adds a check for each way to a hidden path: the path itself, a symbolic
// link, "..", and the root of a process.
func (s *set) everyWay(name string, op operation, p string) {
	for _, w := range []struct{ way, path string }{
		{"", p},
		{"a symbolic link", s.link(p)},
		{"..", dotDot(p)},
		{"/proc/self/root", "/proc/self/root" + p},
	} {
		c := s.add(name, denied, w.way, try{Op: op, Path: w.path})
		c.Path = p
	}
}

// link makes a symbolic link to a path. What is to be created beneath p is
// reached through a link to its directory.
func (s *set) link(p string) string {
	s.links++
	name := fmt.Sprintf("%s/links/%d", s.stage.dir, s.links)
	dir, base := path.Split(p)
	if _, err := os.Lstat(p); err == nil {
		dir, base = p, ""
	}
	_ = os.Symlink(path.Clean(dir), name)
	return path.Join(name, base)
}

// dotDot returns the path with ".." in it, behind the directory that holds the
// last component.
func dotDot(p string) string {
	dir := path.Dir(p)
	return strings.TrimSuffix(dir, "/") + "/../" + path.Base(dir) + "/" + path.Base(p)
}

// descriptor adds a check of a descriptor that was opened before. The launch
// gives it the number.
func (s *set) descriptor(name string, op operation, p string) {
	fd, err := unix.Open(p, unix.O_RDONLY|tryFlags, 0)
	if err != nil {
		if fd, err = unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return
	}
	c := &check{
		Name: s.prefix + name, Op: string(op), Way: "an inherited descriptor", Path: p, Expected: denied,
		Outside: try{Op: op, Path: p}.make().String(), try: try{Op: op, Dev: uint64(st.Dev), Ino: st.Ino}, file: os.NewFile(uintptr(fd), p),
	}
	s.checks = append(s.checks, c)
}

// maxDescriptors is how many hidden paths are also tried by descriptor.
const maxDescriptors = 64

// hidden adds all that is tried of one hidden path, and returns a file in it.
// What the launch exposes of it is passed over.
func (s *set) hidden(p string, exposed []string, byDescriptor bool) (file string) {
	name := "hidden:" + p
	var st unix.Stat_t
	err := unix.Lstat(p, &st)
	switch {
	case err != nil:
		// Not there: making it, or what must stand above it, is what must not work.
		s.everyWay(name, opCreate, firstMissing(p))
		return ""
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		s.everyWay(name, opList, p)
		s.everyWay(name, opCreate, probeFile(p))
		if byDescriptor {
			s.descriptor(name, opList, p)
		}
		var program string
		file, program = sample(p, exposed)
		if file != "" {
			s.everyWay(name, opRead, file)
			s.everyWay(name, opWrite, file)
			if byDescriptor {
				s.descriptor(name, opRead, file)
			}
		}
		if program != "" {
			s.everyWay(name, opExecute, program)
		}
		return file
	case st.Mode&unix.S_IFMT == unix.S_IFREG:
		s.everyWay(name, opRead, p)
		s.everyWay(name, opWrite, p)
		if st.Mode&0o111 != 0 {
			s.everyWay(name, opExecute, p)
		}
		if byDescriptor {
			s.descriptor(name, opRead, p)
		}
		return p
	default:
		// Opening a device, a FIFO or a socket can do something.
		s.add(name, "", "", try{Op: opStat, Path: p})
		return ""
	}
}

// firstMissing returns the first component of a path that does not exist.
func firstMissing(p string) string {
	for p != "/" {
		if _, err := os.Lstat(path.Dir(p)); err == nil {
			break
		}
		p = path.Dir(p)
	}
	return p
}

// sample finds a file in a directory that can be read here, and one that can be
// executed.
func sample(dir string, but []string) (file, program string) {
	const most = 5000
	seen := 0
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if seen++; seen > most || file != "" && program != "" {
			return fs.SkipAll
		}
		if err != nil {
			return nil // not to be listed here either
		}
		if slices.ContainsFunc(but, func(b string) bool { return pathcheck.Within(b, p) }) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if file == "" && info.Size() > 0 && (try{Op: opRead, Path: p}).make().allowed() {
			file = p
		}
		if program == "" && info.Mode()&0o111 != 0 && (try{Op: opExecute, Path: p}).make().allowed() {
			program = p
		}
		return nil
	})
	return file, program
}

// exposed adds what is tried of one exposed path.
func (s *set) exposed(p string) {
	name := "exposed:" + p
	st, err := os.Stat(p)
	switch {
	case err != nil:
		s.add(name, allowed, "", try{Op: opStat, Path: p})
	case st.IsDir():
		s.add(name, expectedAs(opList, p), "", try{Op: opList, Path: p})
		if unix.Access(p, unix.W_OK|unix.X_OK) == nil {
			s.add(name, allowed, "", try{Op: opUse, Path: p})
		}
	case st.Mode().IsRegular():
		s.add(name, expectedAs(opRead, p), "", try{Op: opRead, Path: p})
		s.add(name, expectedAs(opWrite, p), "", try{Op: opWrite, Path: p})
	}
}

// expectedAs expects allowed where permissions allow it.
func expectedAs(op operation, p string) string {
	if (try{Op: op, Path: p}).make().allowed() {
		return allowed
	}
	return ""
}

// general adds the checks that a harness makes at its start, under its names,
// and those of every path that the launch hides and exposes.
func (s *set) general(r report.Report, temp string) {
	var file, dir string
	for i, p := range r.Hidden {
		f := s.hidden(p, r.Exposed, i < maxDescriptors)
		if file == "" {
			file = f
		}
		if st, err := os.Lstat(p); dir == "" && err == nil && st.IsDir() {
			dir = p
		}
	}
	for _, p := range r.Exposed {
		s.exposed(p)
	}
	if file != "" {
		s.add("harnessFile", denied, "", try{Op: opRead, Path: file})
	}
	if dir != "" {
		s.add("harnessDirectory", denied, "", try{Op: opList, Path: dir})
		s.add("harnessDirectoryStat", "", "", try{Op: opStat, Path: dir})
	}
	product := s.stage.real
	if product == "" {
		product = s.stage.helper
	}
	s.add("productFile", expectedAs(opRead, product), "", try{Op: opRead, Path: product})
	s.add("temporaryWrite", allowed, "", try{Op: opUse, Path: temp})
	s.add("playwrightDefaultCache", "", "", try{Op: opList, Path: path.Join(temp, fmt.Sprintf("playwright-transform-cache-%d", os.Getuid()))})
	s.launcher("")
}

// launcher adds what is tried of this process, which is the launcher.
func (s *set) launcher(expected string) {
	dir := fmt.Sprintf("/proc/%d", os.Getpid())
	s.add("harnessEnviron", expected, "", try{Op: opRead, Path: dir + "/environ"})
	s.add("harnessCmdline", "", "", try{Op: opRead, Path: dir + "/cmdline"})
}

// tries returns what the helper must do, and the descriptors for it.
func (s *set) tries() ([]try, []*os.File) {
	var files []*os.File
	tries := make([]try, len(s.checks))
	for i, c := range s.checks {
		if c.file != nil {
			c.try.FD = 3 + len(files)
			files = append(files, c.file)
		}
		tries[i] = c.try
	}
	return tries, files
}

func (s *set) close() {
	for _, c := range s.checks {
		if c.file != nil {
			c.file.Close()
		}
	}
}

// judge puts the outcomes into the checks.
func (s *set) judge(outcomes []outcome) {
	for i, c := range s.checks {
		o := outcomes[i]
		c.Result, c.Errno = o.String(), o.Errno
		if c.Errno == "" {
			c.Errno = o.Detail
		}
		if c.Result == "absent" && c.Outside == allowed {
			c.Result = denied // it is there, and is not to be seen
		}
		// A missing path shows nothing of a hidden one.
		c.OK = c.Expected == "" || c.Result == c.Expected
	}
}
