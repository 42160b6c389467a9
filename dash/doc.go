// Package dash is a web page about a queue: it shows what is wrong, since when, and which action helps.
//
// [New] returns an [http.Handler]. Mount it in a server, behind the sign-in that the server has:
//
//	h, err := dash.New(q, dash.Options{User: signedIn})
//	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", h))
//
// All URLs are relative, so any path and any proxy works. The pages change nothing unless
// [Options.Allow] allows it, action by action. They work without JavaScript; with it they refresh
// themselves.
//
// All viewers of a handler share what it reads from the database. Without viewers, a handler sends no statements.
package dash
