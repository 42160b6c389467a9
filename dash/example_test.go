package dash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

func Example() {
	db, err := testdb.OpenDSN("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a database in memory of its own
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

// account is who is signed in to the application.
type account struct {
	Name   string
	Groups []string
}

// accountKey is the key of the account in the context of a request.
type accountKey struct{}

// session stands for the sessions of the application.
func session(r *http.Request) (a account, ok bool) {
	a, ok = map[string]account{"1": {Name: "ada", Groups: []string{"operators"}}, "2": {Name: "bob"}}[r.Header.Get("Session")]
	return a, ok
}

// signedIn stores the account of a request in its context, and leads others to the sign-in.
func signedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := session(r)
		if !ok {
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, a)))
	})
}

func Example_permissions() {
	db, err := testdb.OpenDSN("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a database in memory of its own
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Migrate(context.Background()); err != nil {
		log.Fatal(err)
	}

	h, err := dash.New(q, dash.Options{
		User: func(r *http.Request) (dash.User, error) {
			a, ok := r.Context().Value(accountKey{}).(account)
			if !ok {
				return dash.User{}, errors.New("Sign in first.") //nolint:revive // a sentence on a page
			}
			return dash.User{Name: a.Name}, nil
		},
		Allow: func(ctx context.Context, _ dash.User, a dash.Action, t dash.Target) bool {
			account, _ := ctx.Value(accountKey{}).(account)
			operator := slices.Contains(account.Groups, "operators")
			switch a {
			case dash.View:
				return true
			case dash.Delete:
				return false
			case dash.Pause, dash.SetPolicy:
				return operator && t.Kind != "charge"
			}
			return operator
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/falldue/", signedIn(http.StripPrefix("/ops/falldue", h)))

	for _, c := range []struct{ session, kind string }{{"1", "mail"}, {"1", "charge"}, {"2", "mail"}, {"", "mail"}} {
		form := url.Values{"subject": {"kind:" + c.kind}}
		r := httptest.NewRequest(http.MethodPost, "/ops/falldue/pause", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Session", c.session)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Header().Get("Location"))))
	}
	pauses, err := ops.New(q).Pauses(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range pauses {
		fmt.Println(p.Subject, "paused by", p.Who)
	}
	// Output:
	// 303 queues?done=paused
	// 403
	// 403
	// 303 /sign-in
	// kind:mail paused by ada
}

func Example_links() {
	options := dash.Options{
		Links: func(t falldue.TaskInfo) []dash.Link {
			links := []dash.Link{{Text: "Logs", URL: fmt.Sprintf("https://logs.example/search?task=%d", t.ID)}}
			if id := t.Metadata["trace"]; id != "" {
				links = append(links, dash.Link{Text: "Trace", URL: "https://traces.example/" + url.PathEscape(id)})
			}
			return links
		},
	}
	for _, l := range options.Links(falldue.TaskInfo{ID: 7, Metadata: map[string]string{"trace": "7f3a90"}}) {
		fmt.Println(l.Text, l.URL)
	}
	// Output:
	// Logs https://logs.example/search?task=7
	// Trace https://traces.example/7f3a90
}

func Example_redact() {
	options := dash.Options{
		Redact: func(_ string, data json.RawMessage) json.RawMessage {
			var fields map[string]json.RawMessage
			if json.Unmarshal(data, &fields) != nil {
				return json.RawMessage(`"hidden"`) // no object
			}
			hidden := false
			for _, name := range []string{"card", "email"} {
				if _, ok := fields[name]; ok {
					fields[name], hidden = json.RawMessage(`"hidden"`), true
				}
			}
			if !hidden {
				return data
			}
			data, _ = json.Marshal(fields) // of valid JSON, which cannot fail
			return data
		},
	}
	fmt.Printf("%s\n", options.Redact("charge", json.RawMessage(`{"order": 42, "card": "4111 1111 1111 1111"}`)))
	fmt.Printf("%s\n", options.Redact("mail", json.RawMessage(`{"order": 42}`)))
	fmt.Printf("%s\n", options.Redact("import", json.RawMessage(`["4111 1111 1111 1111"]`)))
	// Output:
	// {"card":"hidden","order":42}
	// {"order": 42}
	// "hidden"
}

func Example_proxy() {
	db, err := testdb.OpenDSN("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a database in memory of its own
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Migrate(context.Background()); err != nil {
		log.Fatal(err)
	}

	for _, options := range []dash.Options{
		{},
		{
			TrustedOrigins: []string{"http://ops.internal"},     // the address in the browser
			FrameAncestors: []string{"https://portal.internal"}, // may embed the page
		},
	} {
		options.Allow = func(context.Context, dash.User, dash.Action, dash.Target) bool { return true }
		options.Logger = slog.New(slog.DiscardHandler)
		h, err := dash.New(q, options)
		if err != nil {
			log.Fatal(err)
		}
		server := httptest.NewServer(h)
		to, _ := url.Parse(server.URL)
		proxy := http.StripPrefix("/falldue", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to) // and the Host of the server instead of the public one
		}})
		r := httptest.NewRequest(http.MethodPost, "http://ops.internal/falldue/pause", strings.NewReader("subject=kind:mail"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://ops.internal")
		w := httptest.NewRecorder()
		proxy.ServeHTTP(w, r)
		_, frames, _ := strings.Cut(w.Header().Get("Content-Security-Policy"), "frame-ancestors ")
		fmt.Println(w.Code, frames)
		server.Close()
	}
	// Output:
	// 403 'none'
	// 303 https://portal.internal
}
