// BullMQ doing the jobs of the scenarios. Prints one line of numbers, or fails.
//
//   node bullmq.mjs version
//   node bullmq.mjs submit PORT JOBS CONCURRENCY               -> seconds
//   node bullmq.mjs drain PORT JOBS CONCURRENCY                -> seconds
//   node bullmq.mjs steady PORT RATE WORKERS SECONDS           -> jobs, p50 p95 p99 max in ms
//   node bullmq.mjs flow PORT FLOWS LENGTH CONCURRENCY         -> seconds
//
// The clock runs while the work is done; starting node and connecting are not in it. Every job must be
// processed exactly once, or the script ends with status 1.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { FlowProducer, Queue, Worker } from 'bullmq';

const [mode, port, ...numbers] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };
const queueName = 'bench';

const seconds = () => Number(process.hrtime.bigint()) / 1e9;

class Tally {
  constructor(expected) {
    this.expected = expected;
    this.seen = new Set();
    this.finished = new Promise((resolve) => { this.finish = resolve; });
  }
  add(id) {
    if (this.seen.has(id)) throw new Error(`job ${id} was processed twice`);
    this.seen.add(id);
    if (this.seen.size === this.expected) this.finish(seconds());
  }
}

// As many additions under way as there are connections in the other contestants.
async function addAll(queue, jobs, concurrency) {
  let next = 0;
  const adder = async () => {
    while (next < jobs) {
      const index = next++;
      await queue.add('task', { index });
    }
  };
  await Promise.all(Array.from({ length: concurrency }, adder));
}

async function submit(jobs, concurrency) {
  const queue = new Queue(queueName, { connection });
  await queue.waitUntilReady();
  const start = seconds();
  await addAll(queue, jobs, concurrency);
  console.log(seconds() - start);
  await queue.close();
}

async function drain(jobs, concurrency) {
  const tally = new Tally(jobs);
  const worker = new Worker(queueName, async () => 'done', { connection, concurrency, autorun: false });
  worker.on('completed', (job) => tally.add(job.data.index));
  await worker.waitUntilReady();
  const start = seconds();
  worker.run();
  console.log(await tally.finished - start);
  await worker.close();
  const queue = new Queue(queueName, { connection });
  const ended = await queue.getCompletedCount();
  if (ended !== jobs) throw new Error(`${ended} of ${jobs} jobs are completed`);
  await queue.close();
}

const percentile = (sorted, share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];

async function steady(rate, workers, duration) {
  const jobs = Math.floor(rate * duration);
  const tally = new Tally(jobs);
  const latencies = [];
  const queue = new Queue(queueName, { connection });
  const worker = new Worker(queueName, async () => 'done', { connection, concurrency: workers });
  worker.on('completed', (job) => {
    tally.add(job.data.index);
    latencies.push((seconds() - job.data.due) * 1000);
  });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  const start = seconds();
  const pending = [];
  for (let index = 0; index < jobs; index++) {
    const due = start + index / rate;
    const wait = due - seconds();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    pending.push(queue.add('task', { index, due }));
  }
  await Promise.all(pending);
  await tally.finished;
  latencies.sort((a, b) => a - b);
  const shares = [0.5, 0.95, 0.99, 1].map((share) => percentile(latencies, share));
  console.log(jobs, ...shares);
  await worker.close();
  await queue.close();
}

// A chain: each job is the parent of the one that runs before it.
function chain(flow, length) {
  let node;
  for (let step = 0; step < length; step++) {
    const data = { index: flow * length + step, flow, step };
    node = { name: 'task', queueName, data, children: node ? [node] : [] };
  }
  return node;
}

async function flow(flows, length, concurrency) {
  const tally = new Tally(flows * length);
  const reached = new Map();
  const producer = new FlowProducer({ connection });
  const worker = new Worker(queueName, async (job) => {
    const before = reached.get(job.data.flow) ?? -1;
    if (job.data.step !== before + 1) throw new Error('a step ran before its turn');
    reached.set(job.data.flow, job.data.step);
    return 'done';
  }, { connection, concurrency, autorun: false });
  worker.on('completed', (job) => tally.add(job.data.index));
  worker.on('failed', (job, error) => { console.error(error); process.exit(1); });
  await Promise.all([producer.waitUntilReady(), worker.waitUntilReady()]);
  const start = seconds();
  let next = 0;
  const adder = async () => {
    while (next < flows) await producer.add(chain(next++, length));
  };
  await Promise.all(Array.from({ length: concurrency }, adder));
  worker.run();
  console.log(await tally.finished - start);
  await worker.close();
  await producer.close();
}

function version() {
  const path = createRequire(import.meta.url).resolve('bullmq');
  const root = path.slice(0, path.lastIndexOf('/node_modules/bullmq/') + '/node_modules/bullmq/'.length);
  console.log(JSON.parse(readFileSync(`${root}package.json`)).version);
}

await { version, submit, drain, steady, flow }[mode](...numbers.map(Number));
