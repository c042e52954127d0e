package rules

import "strings"

// Pick takes the variable name out of an environment of "NAME=value" strings.
// Rest holds all others, the same strings in the same order; it may be envp
// itself, which is not changed. That the variable occurs twice with different
// values is an [*Error]: which one another reader would take is open.
func Pick(envp []string, name string) (value string, found bool, rest []string, err error) {
	prefix := name + "="
	first := -1
	for i, s := range envp {
		if strings.HasPrefix(s, prefix) {
			first = i
			break
		}
	}
	if first < 0 {
		return "", false, envp, nil
	}
	value = envp[first][len(prefix):]
	rest = make([]string, first, len(envp)-1)
	copy(rest, envp)
	for _, s := range envp[first+1:] {
		switch {
		case !strings.HasPrefix(s, prefix):
			rest = append(rest, s)
		case s[len(prefix):] != value:
			err = &Error{Key: name, Msg: "occurs twice with different values"}
		}
	}
	if err != nil {
		return "", true, rest, err
	}
	return value, true, rest, nil
}

// Apply returns env, a list of "NAME=value" strings, with the change made:
// what is unset is removed wherever it occurs; what is set takes the place of
// its first occurrence, later ones are removed, and a new variable goes to the
// end. All else stays as it is, in its order, also a string without "=". Env
// is not changed; without a change it is returned itself.
func Apply(env []string, change EnvChange) []string {
	if len(change.Unset) == 0 && len(change.Set) == 0 {
		return env
	}
	const gone = -1
	fate := make(map[string]int, len(change.Unset)+len(change.Set))
	for i, v := range change.Set {
		fate[v.Name] = i
	}
	for _, name := range change.Unset {
		fate[name] = gone
	}
	out := make([]string, 0, len(env)+len(change.Set))
	for _, s := range env {
		name, _, ok := strings.Cut(s, "=")
		i, changed := fate[name]
		switch {
		case !ok || !changed:
			out = append(out, s)
		case i != gone:
			out = append(out, change.Set[i].Name+"="+change.Set[i].Value)
			fate[name] = gone
		}
	}
	for i, v := range change.Set {
		if fate[v.Name] == i {
			out = append(out, v.Name+"="+v.Value)
		}
	}
	return out
}

// Blank reports whether the value of the policy variable means "no policy":
// it is empty or ASCII white space.
func Blank(value string) bool { return strings.Trim(value, " \t\r\n\v\f") == "" }
