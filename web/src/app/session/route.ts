import { logIn, logOut } from '@/server/session';

export const dynamic = 'force-dynamic';
export const runtime = 'nodejs';

export const POST = (request: Request): Promise<Response> => logIn(request);
export const DELETE = (request: Request): Response => logOut(request);
