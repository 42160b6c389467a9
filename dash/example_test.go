package dash_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"slices"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/internal/testdb"
)

// session returns who is signed in.
func session(*http.Request) (name string, groups []string) { return "ada", []string{"operators"} }

func Example() {
	db, err := testdb.OpenDSN("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	h, err := dash.New(q, dash.Options{Title: "shop", Badge: "production"})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", h))
	fmt.Println("it starts nothing, and reads when somebody looks")
	// Output: it starts nothing, and reads when somebody looks
}

func Example_permissions() {
	type groups struct{}
	options := dash.Options{
		User: func(r *http.Request) (dash.User, error) {
			name, _ := session(r)
			if name == "" {
				return dash.User{}, errors.New("Sign in first.") //nolint:revive // a sentence on a page
			}
			return dash.User{Name: name}, nil
		},
		Allow: func(ctx context.Context, _ dash.User, a dash.Action, t dash.Target) bool {
			list, _ := ctx.Value(groups{}).([]string)
			switch a {
			case dash.View:
				return true
			case dash.Delete:
				return false
			case dash.Pause, dash.SetPolicy:
				return slices.Contains(list, "operators") && t.Kind != "charge"
			}
			return slices.Contains(list, "operators")
		},
	}
	fmt.Println(options.Allow(context.Background(), dash.User{}, dash.Retry, dash.Target{}))
	// Output: false
}
