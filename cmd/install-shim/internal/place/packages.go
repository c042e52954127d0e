package place

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// dpkgDir is where dpkg is, also where PATH has been cleared.
const dpkgDir = "/usr/bin/"

// upgrades finds out what an upgrade would do with an immutable shim at a path, as far
// as dpkg knows it. upgraded: it goes to the program behind the shim. It is an error
// when it would go to the shim, since dpkg fails halfway then.
func (s *site) upgrades() (upgraded bool, err error) {
	if _, err := os.Stat(dpkgDir + "dpkg-query"); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	for _, p := range s.aliases() {
		owner, err := dpkg("dpkg-query", "--search", literal(p))
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
			continue // no package has it
		}
		if err != nil {
			return false, voice.Refused(s.path(), "ask dpkg for its package: %w", err)
		}
		by, err := dpkg("dpkg-divert", "--listpackage", p)
		if err != nil {
			return false, voice.Refused(s.path(), "ask dpkg for a diversion: %w", err)
		}
		if by != "LOCAL" { // a package that diverts for a file of its own upgrades that file
			owner, _, _ = strings.Cut(owner, ":")
			return false, voice.Hinted(
				voice.Refused(s.path(), "belongs to the package %s, whose upgrade fails where the shim is immutable", voice.Show(owner)),
				"dpkg-divert --local --no-rename --divert "+voice.Show(p+shims.Suffix)+" --add "+voice.Show(p),
			)
		}
		to, err := dpkg("dpkg-divert", "--truename", p)
		if err != nil {
			return false, voice.Refused(s.path(), "ask dpkg for a diversion: %w", err)
		}
		upgraded = upgraded || path.Base(to) == s.sibling() && s.dir.holds(to)
	}
	return upgraded, nil
}

// aliases are the paths by which dpkg may know a file: where /bin leads to /usr/bin, a
// package may have either.
func (s *site) aliases() []string {
	paths := []string{s.path()}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/usr/bin", "/usr/sbin", "/usr/lib"} {
		if p := pathcheck.Join(dir, s.name); p != s.path() && s.dir.holds(p) {
			paths = append(paths, p)
		}
	}
	return paths
}

// literal keeps dpkg-query from taking a path for a pattern (glob(7)).
func literal(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}

// dpkg asks one question and returns the answer's first line.
func dpkg(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, dpkgDir+name, args...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return line, err
}
