/* Criterion's declaring macros, in words that cppcheck understands. */
#define Test(suite, name, ...) void suite##_##name(void)
#define TestSuite(suite, ...) extern int suite##_suite
#define ParameterizedTest(parameter, suite, name, ...) void suite##_##name(parameter)
#define ParameterizedTestParameters(suite, name) \
    struct criterion_test_params suite##_##name##_parameters(void)
