package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

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
			return err
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
		return nil
	})
	f.Func("unset", "", func(s string) error {
		if s == "" || strings.Contains(s, "=") {
			return errors.New("want the name of a variable")
		}
		forget(s)
		r.unset = append(r.unset, s)
		return nil
	})
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
