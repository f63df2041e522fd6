// `helm test`: every service is ready, and the public API answers. URLS is a comma-separated list.
const failures = [];
for (const url of process.env.URLS.split(",")) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    console.log(`${response.status} ${url}`);
    if (!response.ok) failures.push(url);
  } catch (error) {
    console.log(`${error.cause?.code ?? error.message} ${url}`);
    failures.push(url);
  }
}
process.exitCode = failures.length === 0 ? 0 : 1;
