// Package dash is a web page about a queue: it shows what is wrong, since when, and which action helps.
//
// [New] returns an [http.Handler]. Mount the handler in a server, behind the server's sign-in:
//
//	h, err := dash.New(q, dash.Options{User: signedIn})
//	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", h))
//
// All URLs are relative, so any path and any proxy works. The pages change nothing unless [Options.Allow] permits the
// action. They work without JavaScript. With JavaScript, they refresh themselves.
//
// All viewers of a handler share the data that the handler reads from the database. Without viewers, a handler sends no
// statements.
package dash
