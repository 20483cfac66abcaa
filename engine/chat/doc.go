// Package chat renders conversations with the chat templates of models: a template is a program in
// Jinja that makes one text of messages and tools.
//
// A template comes with a model, so it is as untrusted as any file, and the engine that runs it
// (github.com/ardanlabs/jinja) knows no limits. Guarded renders in a child process with limits on
// memory, time and output; Render renders here, for templates that are trusted, and for the child.
//
// The reference is transformers: apply_chat_template with trim_blocks and lstrip_blocks, its own
// tojson, and bos_token and the like as variables. What the engine lacks of that is written here:
// rewrite.go turns every use of tojson, and every printed value, into calls of our own functions
// (json.go) before the template is compiled.
//
// # Reading guide
//
// chat.go (Template, Render), guarded.go (Guarded, Serve), conversation.go (messages and tools from
// JSON, in the order of their keys), find.go (where a model keeps its template), rewrite.go,
// json.go and clock.go (strftime_now).
//
// # Deviations
//
// Templates that Python refuses may render here: an attribute of something undefined, a loop over
// None or a name that is not defined count as nothing. Floating-point numbers that a template
// computes and joins with ~ are printed as Go prints them.
package chat
