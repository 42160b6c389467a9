package dialect

import (
	"strings"
	"testing"
)

// TestEveryEngineIsDescribed: an engine without a dialect of its own name, or
// whose Caps leave a choice open, would get what was made for another.
func TestEveryEngineIsDescribed(t *testing.T) {
	if len(Names) != len(engines) {
		t.Errorf("%d names of %d engines", len(Names), len(engines))
	}
	for _, name := range Names {
		s, err := DefaultServer(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name() != name {
			t.Errorf("the server of %s is called %s", name, s.Name())
		}
		if err := s.Caps.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateReportsWhatIsOpen(t *testing.T) {
	postgres, err := DefaultServer(Postgres)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Caps){
		"Rows must be":             func(c *Caps) { c.Rows = 0 },
		"Upsert must be":           func(c *Caps) { c.Upsert = OnDuplicateKey + 1 },
		"Locks must be":            func(c *Caps) { c.Locks = 0 },
		"Migrations must be":       func(c *Caps) { c.Migrations = "" },
		"Catalog must be":          func(c *Caps) { c.Catalog = 0 },
		"Explain and WholeTable":   func(c *Caps) { c.Explain = "" },
		"Begin must be set":        func(c *Caps) { c.Begin = "" },
		"and IDStep":               func(c *Caps) { c.InsertReturning = false },
		"requires LockRows":        func(c *Caps) { c.LockRows = false },
		"requires UpdateReturning": func(c *Caps) { c.UpdateReturning = false },
	} {
		caps := postgres.Caps
		change(&caps)
		if err := caps.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	none := Caps{}.Validate()
	for _, choice := range []string{"Rows", "Upsert", "Locks", "Migrations", "IDStep"} {
		if none == nil || !strings.Contains(none.Error(), choice) {
			t.Errorf("of Caps that say nothing: error %v, want one that names %s", none, choice)
		}
	}
}
