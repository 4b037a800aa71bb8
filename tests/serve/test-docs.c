/* Documentation of templates: what is replaced, and what never is. */
#include <criterion/criterion.h>
#include <string.h>

#include "serve/docs.h"

static const abx__docs_names env = { .env = "demo",
				     .pool = "demo-1c2gi",
				     .cluster = "here",
				     .base_url = "http://10.1.2.3:8080" };
static const abx__docs_names no_env = { .cluster = "here",
					.base_url = "https://agents.example" };

static void renders(const abx__docs_names *names, const char *text, const char *wanted)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;

	cr_assert_eq(abx__docs_render(text, names, &out), ABX_OK);
	cr_assert_str_eq(abx__buf_str(&out), wanted);
}

Test(serve_docs, an_envs_placeholders)
{
	abx__docs_names bare = env;

	renders(&env, "${AGBX_ENV_NAME} ${AGBX_POOL_NAME} ${AGBX_CLUSTER_ID}",
		"demo demo-1c2gi here");
	renders(&env, "${AGBX_NATIVE_URL}|${AGBX_E2B_URL}|${AGBX_DATA_URL}",
		"http://10.1.2.3:8080|http://10.1.2.3:8080/agent-sandbox/api/e2b|"
		"http://10.1.2.3:8080/agent-sandbox/api/data");
	renders(&env, "${AGBX_DATA_DOMAIN} ${AGBX_HOST} ${AGBX_INNER_IP} ${AGBX_HTTPS}",
		"10.1.2.3:8080/agent-sandbox/api/data 10.1.2.3:8080 10.1.2.3 false");
	bare.pool = NULL;
	renders(&bare, "${AGBX_POOL_NAME}", "demo-pool-name");
}

Test(serve_docs, a_templates_own)
{
	renders(&no_env, "${AGBX_ENV_NAME} ${AGBX_POOL_NAME} ${AGBX_HTTPS} ${AGBX_HOST}",
		"YOUR_ENV_NAME YOUR_POOL_NAME true agents.example");
	renders(&no_env, "${AGBX_INNER_IP}", "${AGBX_INNER_IP}");
}

Test(serve_docs, what_is_not_known_stays)
{
	renders(&env, "E2B_API_KEY=${AGBX_API_KEY}", "E2B_API_KEY=${AGBX_API_KEY}");
	renders(&env, "${AGBX_REGISTRY_HOST} ${HOME} $AGBX_HOST ${AGBX_HOST",
		"${AGBX_REGISTRY_HOST} ${HOME} $AGBX_HOST ${AGBX_HOST");
	renders(&env, "${${AGBX_ENV_NAME}} ${", "${demo} ${");
	renders(&env, "${x\n${AGBX_ENV_NAME}", "${x\ndemo");
	renders(&env, "", "");
}
