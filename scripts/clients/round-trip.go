// A round trip with the generated client in Go: create, read, edit, write back what was read, a refusal, revoke.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ogen-go/ogen/ogenerrors"
	"triwire.example/admin/admin"
)

type source struct{}

func (source) Token(context.Context, admin.OperationName) (admin.Token, error) {
	return admin.Token{Token: os.Getenv("ADMIN_TOKEN")}, nil
}

func (source) Cookie(context.Context, admin.OperationName) (admin.Cookie, error) {
	return admin.Cookie{}, ogenerrors.ErrSkipClientSecurity
}

// as returns an answer of the type that is expected, and ends the program with any other.
func as[T any](answer any, err error) T {
	if err != nil {
		panic(err)
	}
	value, isSo := answer.(T)
	check(isSo, "the answer has another type", answer)
	return value
}

func check(isSo bool, what string, value any) {
	if !isSo {
		panic(fmt.Sprintf("%s: %+v", what, value))
	}
}

func main() {
	ctx := context.Background()
	client, err := admin.NewClient(os.Getenv("ADMIN_URL"), source{})
	check(err == nil, "the client", err)

	wish := &admin.AccountCreateBody{Name: "round trip of Go", Credit: admin.NewOptString("12.5")}
	wish.Budget.SetTo(admin.Budget{Credits: "5", Per: admin.NewNilBudgetPer(admin.BudgetPerDay)})
	made := as[*admin.AccountHeaders](client.AccountCreate(ctx, wish, admin.AccountCreateParams{}))
	id := made.Response.ID
	check(made.Location.Value == "/api/v1/accounts/"+id, "Location", made.Location)

	read := as[*admin.AccountShowOKHeaders](client.AccountShow(ctx, admin.AccountShowParams{Account: id}))
	shown := read.Response
	check(shown.Budget.Value.Credits == "5" && shown.Budget.Value.Spent.Value == "0", "the budget", shown)
	back := admin.AccountUpdateBody{Name: admin.NewOptString(shown.Name)}
	back.Budget.SetTo(shown.Budget.Value)
	params := admin.AccountUpdateParams{Account: id, IfMatch: read.ETag.Value}
	same := as[*admin.AccountShowOKHeaders](client.AccountUpdate(ctx, admin.NewOptAccountUpdateBody(back), params))
	check(same.ETag.Value == read.ETag.Value, "the version stays", same)
	other := admin.AccountUpdateBody{Rpm: admin.NewOptNilInt(7)}
	edited := as[*admin.AccountShowOKHeaders](client.AccountUpdate(ctx, admin.NewOptAccountUpdateBody(other), params))
	check(edited.Response.Rpm.Value == 7, "the edit", edited)
	_ = as[*admin.AccountUpdatePreconditionFailed](client.AccountUpdate(ctx, admin.NewOptAccountUpdateBody(other), params))

	label := admin.KeyCreateBody{Label: admin.NewOptString("one")}
	issued := as[*admin.IssuedKeyHeaders](client.KeyCreate(ctx, admin.NewOptKeyCreateBody(label), admin.KeyCreateParams{Account: id}))
	listed := as[*admin.KeyPage](client.KeyList(ctx, admin.KeyListParams{Account: admin.NewOptString(id)}))
	check(len(listed.Items) == 1 && listed.Items[0].Label.Value == "one", "the keys", listed)
	gone := as[*admin.KeyHeaders](client.KeyDelete(ctx, admin.KeyDeleteParams{Key: issued.Response.ID}))
	check(!gone.Response.Revoked.Null, "revoked", gone)
	fmt.Println("created, read, edited, written back, refused when stale, revoked")
}
