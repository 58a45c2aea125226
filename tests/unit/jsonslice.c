#include "base/jsonslice.h"

#include "unit.h"

static void expect_member(const char *object, const char *name, const char *value) {
    ff_text exact = unit_exact(ff_text_of(object));
    ff_text found = ff_json_slice_member(exact, ff_text_of(name));
    if (value == NULL) {
        cr_expect(ff_text_is_absent(found), "%s of %s", name, object);
    } else {
        cr_expect(ff_text_equal_cstr(found, value), "%s of %s: %.*s", name, object, (int)found.len,
                  found.ptr ? found.ptr : "");
    }
    unit_exact_free(exact);
}

Test(jsonslice, members) {
    expect_member("{\"a\":1}", "a", "1");
    expect_member(" { \"b\" : [1, {\"a\":\"]\"}] , \"a\" : {\"x\":[]} } ", "a", "{\"x\":[]}");
    expect_member("{\"a\":1,\"a\":true}", "a", "true");
    expect_member("{\"a\":\"q\\\"}\",\"b\":1.50}", "b", "1.50");
    expect_member("{\"a\":\"q\\\"}\"}", "a", "\"q\\\"}\"");
    expect_member("{\"\\u0061\":1}", "a", NULL);
    expect_member("{}", "a", NULL);
    expect_member("{ }", "a", NULL);
    expect_member("[1]", "a", NULL);
    expect_member("\"a\"", "a", NULL);
    expect_member("", "a", NULL);
}

static void expect_elements(const char *array, const char *joined) {
    char seen[200] = "";
    ff_text exact = unit_exact(ff_text_of(array));
    ff_text rest = exact;
    ff_text element;
    while (ff_json_slice_next(&rest, &element)) {
        strncat(seen, element.ptr, element.len);
        strcat(seen, "|");
    }
    cr_expect_str_eq(seen, joined, "%s: %s", array, seen);
    unit_exact_free(exact);
}

Test(jsonslice, elements) {
    expect_elements("[]", "");
    expect_elements(" [ ] ", "");
    expect_elements("[1]", "1|");
    expect_elements("[ 1 , \"a,b\",[2,3], [] ,{\"c\":[4]} ]", "1|\"a,b\"|[2,3]|[]|{\"c\":[4]}|");
    expect_elements("{}", "");
    expect_elements("1", "");
}

/* Whatever the text is, nothing behind its end is looked at. */
Test(jsonslice, cut_texts) {
    const char *whole = "{\"a\":[1,\"\\\"x\",{\"b\":null}],\"c\":\"y\\\\\"}";
    for (size_t len = 0; len <= strlen(whole); len++) {
        ff_text cut = unit_exact(ff_text_make(whole, len));
        ff_text rest = cut;
        ff_text element;
        ff_json_slice_member(cut, FF_TEXT("c"));
        while (ff_json_slice_next(&rest, &element)) cr_expect_leq(rest.len, cut.len);
        unit_exact_free(cut);
    }
}
