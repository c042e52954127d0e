package main

const (
	execveat = 322
	ioprio   = 252
)
