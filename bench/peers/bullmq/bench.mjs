// How fast BullMQ drains jobs that do nothing, and how soon it picks up a single one; one line of JSON tells.

import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Queue, Worker } from 'bullmq';

const { version } = createRequire(import.meta.url)('bullmq/package.json');
const USAGE = 'usage: node bench.mjs --url redis://HOST:PORT --jobs N --concurrency N --mode drain|latency';
const QUEUE = 'bench';
const JOB_NAMES = 10;
// One addBulk is one transaction, which the server has to hold as a whole.
const BULK = 1000;

const { url, jobs, concurrency, mode } = readArguments();
// As the documentation asks for workers: never give up on a blocking command.
const connection = { url, maxRetriesPerRequest: null };
const result = mode === 'drain' ? await drain() : await latency();
console.log(JSON.stringify({ peer: 'bullmq', version, mode, jobs, concurrency, ...result }));
// Closing would wait for blocking commands, and nothing is left to lose.
process.exit(0);

async function drain() {
  const queue = openQueue();
  for (let from = 0; from < jobs; from += BULK) {
    const count = Math.min(BULK, jobs - from);
    await queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: jobName(from + n), data: {} })));
  }

  let left = jobs;
  const started = performance.now();
  await new Promise((resolve) => {
    startWorker(async () => {
      left -= 1;
      if (left === 0) resolve();
    });
  });
  const seconds = (performance.now() - started) / 1000;
  return { seconds: round(seconds, 6), jobs_per_second: round(jobs / seconds, 1) };
}

async function latency() {
  const queue = openQueue();
  let onStart;
  startWorker(async () => onStart(performance.now()));
  const microseconds = async (job) => {
    const start = new Promise((resolve) => (onStart = resolve));
    const before = performance.now();
    await queue.add(jobName(job), {});
    return Math.round(((await start) - before) * 1000);
  };
  // One job that does not count opens the connections and loads the scripts, then the worker gets time to fall idle.
  await microseconds(0);
  await sleep(500);

  const times = [];
  for (let job = 0; job < jobs; job += 1) {
    await sleep(5 + Math.random() * 10);
    times.push(await microseconds(job));
  }
  times.sort((a, b) => a - b);
  const percentile = (percent) => times[Math.ceil((times.length * percent) / 100) - 1];
  return { p50_us: percentile(50), p99_us: percentile(99), highest_us: percentile(100) };
}

function openQueue() {
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
  return queue.on('error', fail);
}

function startWorker(handler) {
  const worker = new Worker(QUEUE, handler, { connection, concurrency });
  worker.on('error', fail);
  worker.on('failed', (_, error) => fail(error));
}

function jobName(job) {
  return `job${job % JOB_NAMES}`;
}

function round(number, digits) {
  return Number(number.toFixed(digits));
}

function fail(error) {
  console.error(`bullmq: ${error.message || error.code}`);
  process.exit(1);
}

function readArguments() {
  try {
    const string = { type: 'string' };
    const { values } = parseArgs({ options: { url: string, jobs: string, concurrency: string, mode: string } });
    for (const name of ['url', 'jobs', 'concurrency', 'mode']) {
      if (values[name] === undefined) throw new Error(`--${name} is missing`);
    }
    for (const name of ['jobs', 'concurrency']) {
      if (!/^[1-9]\d{0,8}$/.test(values[name])) throw new Error(`--${name} ${values[name]}: not a positive number`);
    }
    if (!/^rediss?:\/\/./.test(values.url)) throw new Error(`--url ${values.url}: not a redis:// URL`);
    if (!['drain', 'latency'].includes(values.mode)) throw new Error(`--mode ${values.mode}: neither drain nor latency`);
    return { ...values, jobs: Number(values.jobs), concurrency: Number(values.concurrency) };
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    process.exit(2);
  }
}
