// A worker in Node (npm install iovalkey): node worker.mjs [port [lane]]
import Valkey from "iovalkey";

const [port = "6379", lane = "orders"] = process.argv.slice(2);
const LEASE_MS = 3000;
const server = new Valkey(Number(port));
const claimer = server.duplicate(); // the connection that waits in BLOCK

// A map comes as a flat array of names and values.
const toObject = (flat) =>
  Object.fromEntries(flat.flatMap((name, i) => (i % 2 ? [] : [[name, flat[i + 1]]])));

// What it throws makes the attempt fail.
async function work(kind, payload) {
  if (kind === "fail") throw new Error(payload);
  if (kind === "sleep") await new Promise((wake) => setTimeout(wake, Number(payload)));
  return payload;
}

async function run(job) {
  const fence = [job.execution_id, job.lease_id, job.lease_epoch, job.attempt_id];
  const renew = () => server.call("FF.RENEW", ...fence, "LEASE", LEASE_MS).catch(console.error);
  const renewing = setInterval(renew, LEASE_MS / 3);
  try {
    const result = await work(job.kind, job.payload);
    return ["FF.COMPLETE", ...fence, "RESULT", result];
  } catch (error) {
    return ["FF.FAIL", ...fence, error.message];
  } finally {
    clearInterval(renewing);
  }
}

for (;;) {
  const jobs = await claimer.call("FF.CLAIM", lane, "node", `node-${process.pid}`,
    "LEASE", LEASE_MS, "BLOCK", 5000);
  for (const job of jobs.map(toObject)) {
    console.log(toObject(await server.call(...(await run(job)))));
  }
}
