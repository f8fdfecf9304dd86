import { pass } from '@/server/passing';

export const dynamic = 'force-dynamic';
export const runtime = 'nodejs';

const answer = (request: Request): Promise<Response> => pass(request);

export { answer as DELETE, answer as GET, answer as PATCH, answer as POST, answer as PUT };
