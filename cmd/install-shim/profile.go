package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
)

const profileHelp = `install-shim profile list [--profile-dir DIR]
install-shim profile show [--profile-dir DIR] NAME
install-shim profile check [--root DIR] FILE|NAME [-- TARGET ARG...]

A profile is a part of a policy that is used by name: "profile":"NAME". It is
built in, or a file NAME.json in the profile directory that was chosen when the
shim was installed (install --profile-dir). A file goes before a built-in profile
of its name.

list says what there is, show prints the text. check reads a profile as a launch
would and says what is wrong with it. Behind "--" stands a launch: its templates
are resolved with these arguments and this environment, without looking at a
file, and what applies is printed.

  --profile-dir DIR  a directory of profiles
  --root DIR         what the templates call ${root}; in check the default is
                     /root-of-the-policy

Exit codes: 0 done, 1 there is something wrong, 2 wrong usage.

Examples:

  install-shim profile show paperclip-runner >/etc/shim/profiles/my-runner.json
  install-shim profile check /etc/shim/profiles/my-runner.json
  install-shim profile check --root /srv/instance my-runner.json -- \
    my-runner --state-dir /srv/instance/sessions/one
`

func (a *admin) profile(args []string) error {
	if len(args) == 0 {
		return &usageError{"profile", "say what: list, show or check"}
	}
	verb := args[0]
	if verb == "-h" || verb == "-help" || verb == "--help" {
		return &helpWanted{"profile"}
	}
	var opts load.Options
	root := defaultRoot
	f := newFlags("profile")
	f.StringVar(&opts.ProfileDir, "profile-dir", "", "")
	if verb == "check" {
		f.StringVar(&root, "root", root, "")
	}
	rest, err := parse(f, args[1:])
	if err != nil {
		return err
	}
	if opts.ProfileDir != "" {
		if opts.ProfileDir, err = absolute(opts.ProfileDir); err != nil {
			return refused(opts.ProfileDir, "%w", bare(err))
		}
	}
	switch {
	case verb == "list" && len(rest) == 0:
		return a.listProfiles(opts)
	case verb == "show" && len(rest) == 1:
		prof, err := opts.Profile(rest[0])
		if err != nil {
			return err
		}
		a.print(strings.TrimRight(string(prof.Text), "\n") + "\n")
		return nil
	case verb == "check" && len(rest) > 0 && (len(rest) == 1 || rest[1] == "--"):
		return a.checkProfile(opts, root, rest)
	case verb == "list" || verb == "show" || verb == "check":
		return &usageError{"profile", verb + ": wrong number of arguments"}
	default:
		return &usageError{"profile", "unknown command " + show(verb)}
	}
}

const defaultRoot = "/root-of-the-policy"

// policyOf makes a policy of a profile alone, as a launch would read it.
func policyOf(opts load.Options, name, root string) (*rules.Policy, error) {
	return opts.Parse(fmt.Appendf(nil, `{"version":1,"profile":%s,"root":%s}`, jsonString(name), jsonString(root)))
}

// sentence prints text for people as it is, if all of it can be printed.
func sentence(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// listProfiles prints a table. A file that is no profile is in it, too.
func (a *admin) listProfiles(opts load.Options) error {
	names := rules.BuiltinProfiles()
	if opts.ProfileDir != "" {
		entries, err := os.ReadDir(opts.ProfileDir)
		if err != nil {
			return refused(opts.ProfileDir, "%w", bare(err))
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	bad := false
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROFILE\tFROM\tTARGETS\tDESCRIPTION")
	for _, name := range slices.Compact(names) {
		prof, err := opts.Profile(name)
		if err == nil {
			_, err = policyOf(opts, name, defaultRoot)
		}
		if err != nil {
			bad = true
			fmt.Fprintf(w, "%s\t%s\t-\twrong: %v\n", show(name), show(path.Join(opts.ProfileDir, name+".json")), err)
			continue
		}
		from := "built in"
		if prof.File != "" {
			from = show(prof.File)
		}
		targets := "all"
		if prof.Targets != nil {
			targets = strings.Join(prof.Targets, ",")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", show(name), from, show(targets), sentence(prof.Description))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if bad {
		return errSaid
	}
	return nil
}

// checkProfile reads a profile and resolves its templates for a launch.
func (a *admin) checkProfile(opts load.Options, root string, args []string) error {
	name := args[0]
	if strings.Contains(name, "/") || strings.HasSuffix(name, ".json") {
		file, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		if _, err := os.Stat(file); err != nil {
			return refused(name, "%w", bare(err))
		}
		base, ok := strings.CutSuffix(filepath.Base(file), ".json")
		if !ok {
			return refused(name, "the name of a profile's file ends in .json")
		}
		name, opts.ProfileDir = base, filepath.Dir(file)
	}
	p, err := policyOf(opts, name, root)
	if err != nil {
		return refused(args[0], "%w", err)
	}
	if len(args) < 3 {
		a.print("ok\n")
		return nil
	}
	argv := args[2:]
	cwd, _ := os.Getwd()
	names := []string{path.Base(argv[0])}
	made, dropped, err := p.Expand(rules.Values{Argv: argv, Env: a.environ, Cwd: cwd, Names: names})
	if err != nil {
		return refused(args[0], "%w", err)
	}
	if !p.Applies(names) {
		a.warn(names[0], "is none of the targets, so no template applies")
	}
	for _, list := range []struct {
		what    string
		entries []rules.Entry
	}{{"hidden", made.Hidden}, {"exposed", made.Exposed}, {"precreate", made.Precreate}} {
		for _, e := range list.entries {
			a.print(list.what + " " + show(e.Path) + "\n")
		}
	}
	for _, d := range dropped {
		a.print("dropped " + d.Entry + ": " + d.Why + "\n")
	}
	return nil
}
