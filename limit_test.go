package falldue_test

import (
	"errors"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

func TestInvalidLimits(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	for want, limits := range map[string][]falldue.Limit{
		`falldue: invalid: an empty limit on queue "q": make it with AtMost, Rate or InOrder`:                                                                      {falldue.RateLimit{}},
		`falldue: invalid: limit AtMost(0) on queue "q": the number must be 1 to 1,000`:                                                                            {falldue.AtMost(0)},
		`falldue: invalid: limit AtMost(1001).PerKey() on queue "q": the number must be 1 to 1,000`:                                                                {falldue.AtMost(1001).PerKey()},
		`falldue: invalid: limits AtMost(1) and AtMost(2) on queue "q": set only one`:                                                                              {falldue.AtMost(1), falldue.AtMost(2)},
		`falldue: invalid: limit AtMost(1).PerKey("a", "b") on queue "q": PerKey takes one part: set one limit for each part, or PerKey() to count each whole key`: {falldue.AtMost(1).PerKey("a", "b")},
		`falldue: invalid: limit AtMost(1).PerKey("") on queue "q": part "": must be 1 to 32 of A-Z a-z 0-9 . _ -, the first a letter`:                             {falldue.AtMost(1).PerKey("")},
		"": {falldue.AtMost(1000), falldue.AtMost(1).PerKey(), falldue.AtMost(1).PerKey("tenant"), falldue.AtMost(1).PerKey("endpoint")},
	} {
		_, err := falldue.New(db, falldue.Config{Queues: map[string]falldue.QueueConfig{"q": {Limits: limits}}})
		if err == nil {
			if want != "" {
				t.Errorf("limits %v: no error, want %q", limits, want)
			}
			continue
		}
		if err.Error() != want || !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("limits %v: %q, want %q", limits, err, want)
		}
	}
}
