package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// runFlags are a policy on the command line. They are those of a helper that
// harnesses have started in front of their programs before there was a shim:
// --required, --set, --unset, --hide, --expose.
type runFlags struct {
	required     bool
	hide, expose []string
	env          []envFlag
	// given is set once there is any of them.
	given bool
}

// An envFlag is one --set or --unset.
type envFlag struct {
	name, value string
	unset       bool
}

func (r *runFlags) register(f *flag.FlagSet) {
	f.BoolFunc("required", "", func(s string) error {
		r.given, r.required = true, s == "true"
		if s != "true" && s != "false" {
			return fmt.Errorf("want true or false")
		}
		return nil
	})
	path := func(list *[]string) func(string) error {
		return func(s string) error {
			r.given = true
			p, err := besideCwd(s)
			*list = append(*list, p)
			return err
		}
	}
	f.Func("hide", "", path(&r.hide))
	f.Func("expose", "", path(&r.expose))
	f.Func("set", "", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return fmt.Errorf("want NAME=VALUE")
		}
		return r.change(envFlag{name: name, value: value})
	})
	f.Func("unset", "", func(s string) error {
		if s == "" || strings.Contains(s, "=") {
			return fmt.Errorf("want the name of a variable")
		}
		return r.change(envFlag{name: s, unset: true})
	})
}

// change adds a change of the environment. The last one of a variable counts.
func (r *runFlags) change(e envFlag) error {
	r.given = true
	for i := range r.env {
		if r.env[i].name == e.name {
			r.env[i] = e
			return nil
		}
	}
	r.env = append(r.env, e)
	return nil
}

// besideCwd makes a path absolute and leaves ".." in it, which counts from where
// a symbolic link before it leads.
func besideCwd(p string) (string, error) {
	if p == "" {
		return "", fmt.Errorf("the path is empty")
	}
	if strings.HasPrefix(p, "/") {
		return p, nil
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(cwd, "/") + "/" + p, nil
}

// policy is what the flags say.
func (r *runFlags) policy() (*rules.Policy, error) {
	set, unset := map[string]string{}, []string{}
	for _, e := range r.env {
		if e.unset {
			unset = append(unset, e.name)
		} else {
			set[e.name] = e.value
		}
	}
	text, err := json.Marshal(map[string]any{
		"version": 1, "required": r.required, "hidden": notNil(r.hide), "exposed": notNil(r.expose),
		"env": map[string]any{"set": set, "unset": unset},
	})
	if err != nil {
		return nil, err
	}
	return rules.Parse(text)
}
