// A worker in Node (npm install iovalkey): node worker.mjs [port lane]
import Valkey from "iovalkey";

const [port = "6379", lane = "orders"] = process.argv.slice(2);
const LEASE_MS = 5000;
const server = new Valkey(Number(port));
const claimer = server.duplicate(); // the connection that waits in BLOCK

// A map comes as a flat array of names and values.
const toObject = (flat) =>
  Object.fromEntries(flat.flatMap((name, i) => (i % 2 ? [] : [[name, flat[i + 1]]])));

// A refusal, such as that of a lease that was lost, is shown and does not end the worker.
const send = (command) => server.call(...command).then(toObject, (refusal) => refusal.message);

// What it throws makes the attempt fail.
async function work(kind, payload) {
  if (kind === "fail") throw new Error(payload);
  if (kind === "sleep") await new Promise((wake) => setTimeout(wake, Number(payload)));
  return payload;
}

async function run(job) {
  const fence = [job.execution_id, job.lease_id, job.lease_epoch, job.attempt_id];
  const renewal = ["FF.RENEW", ...fence, "LEASE", LEASE_MS];
  const renewing = setInterval(() => send(renewal), LEASE_MS / 3);
  const end = await work(job.kind, job.payload).then(
    (result) => ["FF.COMPLETE", ...fence, "RESULT", result ?? ""],
    (error) => ["FF.FAIL", ...fence, error.message]);
  clearInterval(renewing);
  return send(end);
}

for (;;) {
  const jobs = await claimer.call("FF.CLAIM", lane, "node", `node-${process.pid}`,
    "LEASE", LEASE_MS, "BLOCK", 5000);
  for (const job of jobs.map(toObject)) console.log(await run(job));
}
