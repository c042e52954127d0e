package rules

import "errors"

const missingUnversioned = `missing (a policy without "version":1 has "hidden" and "required")`

// parseUnversioned reads the form of a policy that has no version: an object
// with "hidden" and "required", both mandatory, and perhaps "instanceRoot", which
// asks for the profile [PaperclipRunner]. Keys that nobody knows are ignored,
// since its writers add some; a key of version 1 is an error, or the policy would
// hold less than its text says.
func (o Options) parseUnversioned(data []byte, members []member) (*Policy, error) {
	var prof *Profile
	if hasKey(members, "instanceRoot") {
		var err error
		if prof, err = o.Profile(PaperclipRunner); err != nil {
			return nil, err
		}
	}
	given := prof.keys()
	p, err := o.compose(prof, true, func(p *Policy) (err error) {
		p.Version = 1
		for _, m := range members {
			r := &jsonReader{data: data[:m.end], pos: m.start}
			switch m.key {
			case "hidden":
				p.Hidden, err = r.entries(m.key, false)
			case "required":
				p.Required, err = r.boolean(m.key)
			case "instanceRoot":
				p.Root, err = r.path(m.key)
			default:
				if o.isKey(m.key) {
					err = &Error{Key: m.key, Msg: `is a key of version 1 (add "version":1)`}
				}
			}
			if err != nil {
				return err
			}
		}
		for _, key := range []string{"hidden", "required"} {
			if !hasKey(members, key) {
				return &Error{Key: key, Msg: missingUnversioned}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := p.finish(given); err != nil {
		return nil, err
	}
	return p, nil
}

// isKey reports whether version 1 defines the key.
func (o Options) isKey(key string) bool {
	err := o.decodeMember(newPolicy(), &jsonReader{data: []byte("0")}, key)
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Msg != unknownKey
}
