package policies

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// RunHelp is the help text of run.
const RunHelp = `install-shim run [--policy FILE|-] [--shim FILE] -- COMMAND [ARG...]
install-shim run [--required] [--hide PATH]... [--expose PATH]...
                 [--set NAME=VALUE|--unset NAME]... -- COMMAND [ARG...]

Runs one command confined, with nothing installed: for trying a policy, and for
those who can change the launch. The policy comes from FILE, from standard input
(-), or from SANDBOX_EXEC_SHIM_POLICY when --policy is not given.

COMMAND is looked up on PATH. A shim that is found there is passed over. The
command gets argv[0] as it is written here. Unlike an installed shim, run itself
starts as an ordinary Go program: a closed descriptor 0, 1 or 2 is opened to
/dev/null, and the signal mask is the runtime's.

  --policy FILE     the policy; - is standard input
  --shim FILE       a bare shim (default: sandbox-exec-shim beside install-shim)

In place of a policy:

  --hide PATH       nothing at or beneath PATH can be reached
  --expose PATH     but this, beneath a hidden path, which must exist
  --required        do not start the command unconfined (default: start it, and
                    warn, when the kernel cannot confine it)
  --set NAME=VALUE  change the command's environment; the last one of a NAME counts
  --unset NAME      likewise

A relative PATH counts from the current directory.

Exit codes: the command's own; 125 the policy or the shim is at fault, 126 the
command cannot be executed, 127 it was not found.

Examples:

  install-shim run --policy policy.json -- bash -c 'ls /srv/secrets'
  echo '{"version":1,"hidden":["/srv/secrets"]}' | install-shim run --policy - -- make test
  install-shim run --required --hide /srv/runs --expose /srv/runs/own --unset TOKEN -- agent
`

// Exit codes of run, those of a launch.
const (
	exitRunFailed   = 125
	exitRunRefused  = 126
	exitRunNotFound = 127
)

// MaxString is the kernel's MAX_ARG_STRLEN, with the terminating NUL.
const MaxString = 128 << 10

// Run becomes a shim, which becomes the command. It returns only when that did
// not happen.
func Run(v *voice.Caller, args []string) error {
	return voice.Exit(exitRunFailed, run(v, args))
}

func run(v *voice.Caller, args []string) error {
	var policyFile, shimPath string
	var own runFlags
	f := voice.NewFlags("run")
	own.register(f)
	f.Text(&policyFile, "policy")
	f.Text(&shimPath, "shim")
	command, err := f.Read(args)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		return f.Wrong("no command given")
	}
	if own.given && policyFile != "" {
		return f.Wrong("--policy goes without --required, --hide, --expose, --set and --unset")
	}
	var policy *Policy
	if own.given {
		policy, err = own.policy(v)
	} else {
		policy, err = Read(v, f.Name(), policyFile, record.Record{})
	}
	if err != nil {
		return err
	}
	src, err := shims.Load(shimPath)
	if err != nil {
		return err
	}
	if src.Recorded {
		return voice.Refused(src.Path, "is an installed shim, which always starts its own program: run needs a bare one")
	}
	program, err := commandPath(v, command[0])
	if err != nil {
		return err
	}
	if policy.Program != "" && policy.Program != program {
		return fmt.Errorf("policy: program: names %s, but the command is %s", voice.Show(policy.Program), voice.Show(program))
	}
	policy.Program = program
	text, err := Text(policy.Policy)
	if err != nil {
		return err
	}
	variable := policy.Variable + "=" + text
	if len(variable) >= MaxString {
		return voice.Hinted(
			fmt.Errorf("policy: has %d bytes, more than an environment variable can hold", len(variable)),
			"an installed shim can read it from a file: "+policy.Variable+"=@/absolute/file",
		)
	}
	err = unix.Exec(src.Path, command, append(policy.Environ, variable))
	return voice.Refused(src.Path, "execve: %w", err)
}

// commandPath returns the absolute path of the real program that a command
// means. Where the command leads to an installed shim, that is the program
// behind it.
func commandPath(v *voice.Caller, command string) (string, error) {
	if command != "" && !strings.Contains(command, "/") {
		// A shim in a directory is passed over.
		for _, f := range shims.OnPath(v, command) {
			switch {
			case !f.IsShim:
				return f.Path, nil
			case f.Record.InPlace:
				return f.Record.Real, nil
			}
		}
		return "", voice.Exit(exitRunNotFound, voice.Refused(command, "%w", shims.ErrNotOnPath))
	}
	at, err := shims.Find(v, command)
	if err != nil {
		return "", voice.Exit(exitRunNotFound, err)
	}
	if at.Record.Real != "" {
		return at.Record.Real, nil
	}
	if shims.Executable(at.Path) {
		return at.Path, nil
	}
	code := exitRunRefused
	_, err = os.Stat(at.Path)
	switch {
	case err == nil:
		err = errors.New("is not an executable file")
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		code = exitRunNotFound
	}
	return "", voice.Exit(code, voice.Refused(command, "%w", voice.Bare(err)))
}

// runFlags are a policy on the command line. They are those of a helper that
// harnesses have started in front of their programs before there was a shim:
// --required, --set, --unset, --hide, --expose.
type runFlags struct {
	required     bool
	hide, expose []string
	set          map[string]string
	unset        []string
	// given is set once there is any of them.
	given bool
}

func (r *runFlags) register(f voice.Flags) {
	f.BoolFunc("required", "", func(s string) error {
		r.given, r.required = true, s == "true"
		if s != "true" && s != "false" {
			return errors.New("want true or false")
		}
		return nil
	})
	for name, list := range map[string]*[]string{"hide": &r.hide, "expose": &r.expose} {
		f.Func(name, "", func(s string) error {
			r.given = true
			p, err := shims.FromCwd(s)
			*list = append(*list, p)
			return cmp.Or(err, asText(s))
		})
	}
	// The last one of a variable counts.
	forget := func(name string) {
		r.given = true
		delete(r.set, name)
		r.unset = slices.DeleteFunc(r.unset, func(n string) bool { return n == name })
	}
	r.set = map[string]string{}
	f.Func("set", "", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return errors.New("want NAME=VALUE")
		}
		forget(name)
		r.set[name] = value
		return asText(s)
	})
	f.Func("unset", "", func(s string) error {
		if s == "" || strings.Contains(s, "=") {
			return errors.New("want the name of a variable")
		}
		forget(s)
		r.unset = append(r.unset, s)
		return asText(s)
	})
}

// asText says of a string that cannot stand in a policy, where it would become
// another one.
func asText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not UTF-8, so a policy cannot say it")
	}
	return nil
}

// policy is what the flags say.
func (r *runFlags) policy(v *voice.Caller) (*Policy, error) {
	text, err := json.Marshal(map[string]any{
		"version": 1, "required": r.required, "hidden": voice.Listed(r.hide), "exposed": voice.Listed(r.expose),
		"env": map[string]any{"set": r.set, "unset": voice.Listed(r.unset)},
	})
	if err != nil {
		return nil, err
	}
	p, err := rules.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	_, _, rest, _ := rules.Pick(v.Environ, rules.DefaultPolicyEnv)
	return &Policy{Policy: p, Variable: rules.DefaultPolicyEnv, Environ: rest}, nil
}
