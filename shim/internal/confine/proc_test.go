package confine

func procChild(in []byte) (any, error) { return nil, nil }
