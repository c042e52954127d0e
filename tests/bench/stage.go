package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// A stage is a directory with all that the variants start.
type stage struct {
	dir     string
	install []string // install-shim and what all installs have in common
	targets []target
	cExec   string // "" when there is no C compiler
	goExec  string
	bwrap   string // "" when it is missing or does not work here
	missing []string
}

// A target is a program that exits with 0, and the shim installed for it.
type target struct{ what, name, path, shim string }

const cSource = `#include <unistd.h>
int main(int argc, char **argv) { return argc < 2 ? 2 : execv(argv[1], argv + 1); }
`

const cTrueSource = "int main(void) { return 0; }\n"

const goSource = `package main

import (
	"os"
	"syscall"
)

func main() {
	if syscall.Exec(os.Args[1], os.Args[1:], os.Environ()) != nil {
		os.Exit(2)
	}
}
`

func newStage(dir, bin string) (*stage, error) {
	shims := filepath.Join(dir, "shims")
	if err := os.Mkdir(shims, 0o755); err != nil {
		return nil, err
	}
	s := &stage{dir: dir, install: []string{
		filepath.Join(bin, "install-shim"), "install", "--dir", shims, "--shim", filepath.Join(bin, "sandbox-exec-shim"),
	}}
	code, err := smallest()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "smallest")
	if err := os.WriteFile(path, code, 0o755); err != nil {
		return nil, err
	}
	if err := s.addTarget("the smallest program there can be", path); err != nil {
		return nil, err
	}
	if path, err = s.compileC("true", cTrueSource); err == nil {
		if err := s.addTarget("a static C program that only returns", path); err != nil {
			return nil, err
		}
		s.cExec, err = s.compileC("exec", cSource)
	}
	if err != nil {
		s.leftOut("the C programs", err)
	}
	s.buildGo()
	s.findBwrap()
	return s, nil
}

func (s *stage) addTarget(what, path string) error {
	name := filepath.Base(path)
	args := append(s.install[1:len(s.install):len(s.install)], "--real", path, name)
	if out, err := exec.Command(s.install[0], args...).CombinedOutput(); err != nil {
		return fmt.Errorf("install-shim: %w\n%s", err, out)
	}
	s.targets = append(s.targets, target{what: what, name: name, path: path, shim: filepath.Join(s.dir, "shims", name)})
	return nil
}

// compileC returns the path of a static program.
func (s *stage) compileC(name, source string) (string, error) {
	out := filepath.Join(s.dir, "c-"+name)
	file := out + ".c"
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		return "", err
	}
	if msg, err := exec.Command("cc", "-O2", "-static", "-o", out, file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w %s", err, msg)
	}
	return out, nil
}

func (s *stage) buildGo() {
	source, out := filepath.Join(s.dir, "exec.go"), filepath.Join(s.dir, "exec-go")
	if err := os.WriteFile(source, []byte(goSource), 0o644); err != nil {
		s.leftOut("the Go program", err)
		return
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		s.leftOut("the Go program", fmt.Errorf("%w %s", err, msg))
		return
	}
	s.goExec = out
}

// findBwrap takes bwrap only if it works: it needs user namespaces, or root.
func (s *stage) findBwrap() {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		s.leftOut("bwrap", err)
		return
	}
	if msg, err := exec.Command(path, "--dev-bind", "/", "/", s.targets[0].path).CombinedOutput(); err != nil {
		s.leftOut("bwrap", fmt.Errorf("%w %s", err, msg))
		return
	}
	s.bwrap = path
}

func (s *stage) leftOut(what string, err error) {
	s.missing = append(s.missing, what+": "+err.Error())
}

// siblings makes a directory of n entries, half files and half directories,
// and one more whose path it returns: the one to hide.
func (s *stage) siblings(n int) (hidden string, err error) {
	top := filepath.Join(s.dir, "of-"+strconv.Itoa(n))
	hidden = filepath.Join(top, "hidden")
	if err := os.MkdirAll(hidden, 0o755); err != nil {
		return "", err
	}
	for i := range n {
		name := filepath.Join(top, strconv.Itoa(i))
		if i%2 == 0 {
			err = os.Mkdir(name, 0o755)
		} else {
			err = os.WriteFile(name, nil, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	return hidden, nil
}
