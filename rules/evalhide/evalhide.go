package evalhide

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// An Attempt says where one attempt of an evaluation stands. Paths are absolute
// and need not exist; they are cleaned and not resolved. A blank or relative one
// is skipped, see [Result.Skipped].
type Attempt struct {
	// Repo is the top of the checkout that holds the graders in tests/.
	Repo string
	// Temp is the temporary root of the attempts, Private the directory with
	// what an attempt must not see.
	Temp, Private string
	// SharedTemp is where programs make their temporary files; "" means /tmp.
	// Nothing in it can be hidden: what stands above a hidden path takes no new
	// entries.
	SharedTemp string
	// Evidence and RunnerTemp are hidden where they can be.
	Evidence, RunnerTemp string
	// Instance is the root of the runner's instance, for the profile
	// [rules.PaperclipRunner]; "" leaves the profile out.
	Instance string
	// Hide holds more paths that must be hidden.
	Hide []string
	// Required makes a path that cannot be hidden an error.
	Required bool
}

// A Result is what [Policy] made of an [Attempt].
type Result struct {
	// Text is the policy, one JSON object without a newline; nil when nothing
	// is left to hide.
	Text []byte
	// Hidden are the policy's hidden paths.
	Hidden []string
	// Root is the instance that the policy names, or "".
	Root string
	// Unhideable are paths that should be hidden and cannot be.
	Unhideable []string
	// Skipped names the fields of the Attempt that are needed for a whole policy
	// and were blank or relative, or an Instance in the shared temp directory.
	Skipped []string
}

// tempPrivate is what an attempt's temporary root holds and an agent must not see.
var tempPrivate = []string{"artifacts-private", "control", "selected-private-inputs", "playwright-transform-cache"}

// Policy makes the policy that hides from an agent what would give away how
// it is graded: in the checkout tests, the Git store (which holds tests, too)
// and .manual-private-trusted; in the temporary root its private directories;
// the private directory; and what the caller adds.
//
// A path cannot be hidden when it is or holds the checkout or the temporary
// root, or is, holds or lies in the shared temp directory. With Required that
// is an [*UnhideableError]; otherwise the rest is hidden and Unhideable says what
// is not. Any other error comes from reading the Git store, or from [rules.Parse] for
// a path that no policy can have.
func Policy(e Attempt) (*Result, error) {
	out := &Result{}
	if e.SharedTemp == "" {
		e.SharedTemp = "/tmp"
	}
	skip := func(field, value string) string {
		clean, ok := cleanAbs(value)
		if !ok {
			out.Skipped = append(out.Skipped, field)
		}
		return clean
	}
	shared, _ := cleanAbs(e.SharedTemp)
	repo, temp, private := skip("repo", e.Repo), skip("temp", e.Temp), skip("private", e.Private)

	var essential []string
	if repo != "" {
		store, err := GitStore(repo)
		if err != nil {
			return nil, err
		}
		essential = append(essential, pathcheck.Join(repo, "tests"))
		essential = append(essential, store...)
		essential = append(essential, pathcheck.Join(repo, ".manual-private-trusted"))
	}
	if temp != "" {
		for _, name := range tempPrivate {
			essential = append(essential, pathcheck.Join(temp, name))
		}
	}
	if private != "" {
		essential = append(essential, private)
	}
	var optional []string
	for _, p := range []string{e.Evidence, e.RunnerTemp} {
		if clean, ok := cleanAbs(p); ok {
			optional = append(optional, clean)
		}
	}
	var extra []string
	for _, p := range e.Hide {
		if clean := skip("hide", p); clean != "" {
			extra = append(extra, clean)
		}
	}

	hideable := func(p string) bool {
		for _, open := range []string{temp, repo, shared} {
			if open != "" && pathcheck.Within(p, open) {
				return false
			}
		}
		return shared == "" || !pathcheck.Within(shared, p)
	}
	add := func(list []string, must bool) {
		for _, p := range list {
			switch {
			case hideable(p):
				if !slices.Contains(out.Hidden, p) {
					out.Hidden = append(out.Hidden, p)
				}
			case must && !slices.Contains(out.Unhideable, p):
				out.Unhideable = append(out.Unhideable, p)
			}
		}
	}
	add(essential, true)
	add(optional, false)
	add(extra, true)
	if len(out.Unhideable) > 0 && e.Required {
		return nil, &UnhideableError{Paths: out.Unhideable}
	}
	if len(out.Hidden) == 0 {
		return out, nil
	}
	if root, ok := cleanAbs(e.Instance); ok && (shared == "" || !pathcheck.Within(shared, root)) {
		out.Root = root
	} else if e.Instance != "" {
		out.Skipped = append(out.Skipped, "instance")
	}
	var err error
	if out.Text, err = out.text(e.Required); err == nil {
		_, err = rules.Parse(out.Text)
	}
	return out, err
}

func (r *Result) text(required bool) ([]byte, error) {
	policy := struct {
		Version  int      `json:"version"`
		Required bool     `json:"required"`
		Profile  string   `json:"profile,omitempty"`
		Root     string   `json:"root,omitempty"`
		Hidden   []string `json:"hidden"`
	}{Version: 1, Required: required, Root: r.Root, Hidden: r.Hidden}
	if r.Root != "" {
		policy.Profile = rules.PaperclipRunner
	}
	for _, p := range append([]string{r.Root}, r.Hidden...) {
		if !utf8.ValidString(p) {
			// JSON would hold another path.
			return nil, errors.New(rules.QuotePath(p) + " is not UTF-8")
		}
	}
	return json.Marshal(policy)
}

// cleanAbs returns the cleaned path, or "" for one that is blank or relative.
func cleanAbs(p string) (string, bool) {
	if !strings.HasPrefix(p, "/") {
		return "", false
	}
	return path.Clean(p), true
}

// An UnhideableError says that a policy would not hide all that it must.
type UnhideableError struct{ Paths []string }

// UnhideableHint says what can be done about an [UnhideableError].
const UnhideableHint = "keep the checkout, the temporary root and the private directories apart and outside of the shared temp directory, for example beneath /var/tmp"

// Error begins with a word that operators look for.
func (e *UnhideableError) Error() string {
	quoted := make([]string, len(e.Paths))
	for i, p := range e.Paths {
		quoted[i] = strconv.Quote(p)
	}
	return "agent_filesystem_sandbox_incomplete: cannot be hidden: " + strings.Join(quoted, ", ")
}
