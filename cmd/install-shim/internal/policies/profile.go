package policies

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
)

// ProfileHelp is the help text of profile.
const ProfileHelp = `install-shim profile list [--profile-dir DIR]
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

// Profile lists, prints and checks profiles.
func Profile(v *voice.Caller, args []string) error {
	f := voice.NewFlags("profile")
	if len(args) == 0 {
		return f.Wrong("say what: list, show or check")
	}
	verb := args[0]
	if voice.IsHelp(verb) {
		return &voice.HelpWanted{Command: f.Name()}
	}
	var opts load.Options
	root := defaultRoot
	f.Text(&opts.ProfileDir, "profile-dir")
	if verb == "check" {
		f.Text(&root, "root")
	}
	rest, err := f.Read(args[1:])
	if err != nil {
		return err
	}
	if opts.ProfileDir != "" {
		given := opts.ProfileDir
		if opts.ProfileDir, err = shims.Absolute(given); err != nil {
			return voice.Refused(given, "%w", err)
		}
	}
	switch {
	case verb == "list" && len(rest) == 0:
		return listProfiles(v, opts)
	case verb == "show" && len(rest) == 1:
		prof, err := opts.Profile(rest[0])
		if err == nil {
			v.Print("%s\n", strings.TrimRight(string(prof.Text), "\n"))
		}
		return err
	case verb == "check" && len(rest) > 0 && (len(rest) == 1 || rest[1] == "--"):
		return checkProfile(v, opts, root, rest)
	case verb == "list" || verb == "show" || verb == "check":
		return f.Wrong(verb + ": wrong number of arguments")
	default:
		return f.Wrong("unknown command " + voice.Show(verb))
	}
}

const defaultRoot = "/root-of-the-policy"

// policyOf makes a policy of a profile alone, as a launch would read it.
func policyOf(opts load.Options, name, root string) (*rules.Policy, error) {
	if err := asText(name + root); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"version": 1, "profile": name, "root": root})
	if err != nil {
		return nil, err
	}
	return opts.Parse(text)
}

// sentence prints text for people as it is, if all of it can be printed.
func sentence(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// listProfiles prints a table. A file that is no profile is in it, too.
func listProfiles(v *voice.Caller, opts load.Options) error {
	names := rules.BuiltinProfiles()
	if opts.ProfileDir != "" {
		entries, err := os.ReadDir(opts.ProfileDir)
		if err != nil {
			return voice.Refused(opts.ProfileDir, "%w", voice.Bare(err))
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var bad error
	w := v.Table()
	fmt.Fprintln(w, "PROFILE\tFROM\tTARGETS\tDESCRIPTION")
	for _, name := range slices.Compact(names) {
		prof, err := opts.Profile(name)
		if err == nil {
			_, err = policyOf(opts, name, defaultRoot)
		}
		if err != nil {
			bad = voice.ErrSaid
			fmt.Fprintf(w, "%s\t%s\t-\twrong: %v\n", voice.Show(name), voice.Show(path.Join(opts.ProfileDir, name+".json")), err)
			continue
		}
		from, targets := "built in", "all"
		if prof.File != "" {
			from = voice.Show(prof.File)
		}
		if prof.Targets != nil {
			targets = strings.Join(prof.Targets, ",")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", voice.Show(name), from, voice.Show(targets), sentence(prof.Description))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return bad
}

// checkProfile reads a profile and resolves its templates for a launch. This is
// no plan: no file is looked at, and the policy may be one that no launch takes.
func checkProfile(v *voice.Caller, opts load.Options, root string, args []string) error {
	name := args[0]
	if strings.Contains(name, "/") || strings.HasSuffix(name, ".json") {
		file, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		if _, err := os.Stat(file); err != nil {
			return voice.Refused(name, "%w", voice.Bare(err))
		}
		base, ok := strings.CutSuffix(filepath.Base(file), ".json")
		if !ok {
			return voice.Refused(name, "the name of a profile's file ends in .json")
		}
		name, opts.ProfileDir = base, filepath.Dir(file)
	}
	p, err := policyOf(opts, name, root)
	if err != nil {
		return voice.Refused(args[0], "%w", err)
	}
	if len(args) < 3 {
		v.Print("ok\n")
		return nil
	}
	argv := args[2:]
	cwd, _ := os.Getwd()
	names := []string{path.Base(argv[0])}
	made, dropped, err := p.Expand(rules.Values{Argv: argv, Env: v.Environ, Cwd: cwd, Names: names})
	if err != nil {
		return voice.Refused(args[0], "%w", err)
	}
	if !p.Applies(names) {
		v.Warn(names[0], "is none of the targets, so no template applies")
	}
	for _, list := range []struct {
		what    string
		entries []rules.Entry
	}{{"hidden", made.Hidden}, {"exposed", made.Exposed}, {"precreate", made.Precreate}} {
		for _, e := range list.entries {
			v.Print("%s %s\n", list.what, voice.Show(e.Path))
		}
	}
	printDropped(v, dropped)
	return nil
}
