(* Trade-offs along a chain: the f-sweep, and the scalar bound of its program. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels Chain.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rules.
Variables (R : realFieldType) (O : finType) (P Q U : O -> R) (a b : R -> R).

Lemma compose_step (p q r c1 c2 A B : R) : 0 <= c1 ->
  p - c1 * q <= A -> q - c2 * r <= B -> p - c1 * c2 * r <= A + c1 * B.
Proof.
move=> c0 pq qr; have -> : p - c1 * c2 * r = (p - c1 * q) + c1 * (q - c2 * r).
  by rewrite mulrBr mulrA addrA subrK.
by rewrite ler_add // ler_wpmul2l.
Qed.

Lemma composition : divergence_le P Q a -> divergence_le Q U b ->
  forall E : pred O, composed a b (\sum_(o | E o) P o) (\sum_(o | E o) U o).
Proof.
move=> pq qu E c1 c2 c10 c20; apply: compose_step (pq E c1 c10) (qu E c2 c20).
exact: ltW.
Qed.

Lemma complement : \sum_o P o = 1 -> \sum_o Q o = 1 -> divergence_le Q P b ->
  divergence_le P Q (fun c => 1 - c + c * b c^-1).
Proof.
move=> P1 Q1 qp E c c0.
have split_sum (F : O -> R) : \sum_(o | E o) F o = \sum_o F o - \sum_(o | ~~ E o) F o.
  by rewrite [X in _ = X - _](bigID E) /= addrK.
rewrite !split_sum P1 Q1; set p := \sum_(o | ~~ _) P o; set q := \sum_(o | ~~ _) Q o.
have -> : 1 - p - c * (1 - q) = 1 - c + (c * q - p).
  by rewrite mulrBr mulr1 opprB [c * q - c]addrC addrACA [- p + _]addrC.
have cinv : 0 < c^-1 by rewrite invr_gt0.
have := qp (fun o => ~~ E o) _ cinv; rewrite -/p -/q ler_add2l.
by rewrite -(ler_pmul2l c0) mulrBr mulrA divff ?gt_eqF // mul1r.
Qed.

End Rules.

(* One side of a node, kernels of total weight 1. *)
Section Side.
Variables (R : realFieldType) (S : finType) (K : nat -> S -> S -> R).
Variable occurs : nat -> pred S.
Hypothesis K0 : forall j x z, 0 <= K j x z.
Hypothesis K1 : forall j x, occurs j.+1 x -> \sum_z K j x z = 1.
Hypothesis Kout : forall j x z, occurs j.+1 x -> ~~ occurs j z -> K j x z = 0.
Implicit Types (h : seq S -> R) (s b : seq S).

Local Notation W := (beyond K (fun=> 1)).

Lemma support_any : support K (fun=> 1 : R) (fun=> predT).
Proof. by split=> // _; exact: ler01. Qed.

Lemma W1 k x : occurs k x -> W k x (fun=> 1) = 1.
Proof.
elim: k x => [|k IH] x occ /=; first by rewrite mulr1.
rewrite -[RHS](K1 occ); apply: eq_bigr => z _.
have [oz|noz] := boolP (occurs k z); first by rewrite IH ?mulr1.
by rewrite (Kout occ noz) mul0r.
Qed.

Lemma W_add k x h1 h2 : W k x (fun s => h1 s + h2 s) = W k x h1 + W k x h2.
Proof.
elim: k x h1 h2 => [|k IH] x h1 h2 /=; first by rewrite mulrDr.
by rewrite -big_split; apply: eq_bigr => z _; rewrite IH mulrDr.
Qed.

Lemma W_shift k x c d h : occurs k x -> W k x (fun s => c * h s + d) = c * W k x h + d.
Proof.
move=> occ; rewrite W_add beyond_scale; congr (_ + _).
rewrite (_ : W k x (fun=> d) = W k x (fun=> d * 1)); last by rewrite mulr1.
by rewrite (beyond_scale K (fun=> 1) k x d (fun=> 1)) W1 // mulr1.
Qed.

Lemma W_mean k x h (d c : R) h' : occurs k x ->
  (forall s, size s = k -> h s - c * h' s <= d) -> W k x h - c * W k x h' <= d.
Proof.
move=> occ le; rewrite ler_subl_addl -W_shift //.
by apply: (beyond_le support_any) => s sz; rewrite -ler_subl_addl le.
Qed.

Lemma W_unit k x h : occurs k x -> (forall s, size s = k -> 0 <= h s <= 1) ->
  0 <= W k x h <= 1.
Proof.
move=> occ h01; apply/andP; split.
  by apply: (beyond_ge0 support_any) => s sz; have /andP[] := h01 s sz.
by rewrite -[X in _ <= X](W1 occ); apply: (beyond_le support_any) => s sz; have /andP[] := h01 s sz.
Qed.

Variables (g r : nat -> S -> S -> R -> R).
Hypothesis rec : tradeoff_recursion K occurs g r.

(* The probability of an event, as a function of the data on this side. *)
Definition tame k h : Prop :=
  (forall s, size s = k -> 0 <= h s <= 1) /\
  (forall b s z w c, (size b + (size s).+1)%N = k -> z != w -> 0 < c ->
     h (b ++ z :: s) - c * h (b ++ w :: s) <= g (size s) z w c).

Lemma tame_cons k h z : tame k.+1 h -> tame k (fun s => h (z :: s)).
Proof.
move=> [h01 hg]; split=> [s sz|b s y w c e ne c0]; first by rewrite h01 //= sz.
by apply: (hg (z :: b)) => //=; rewrite -e.
Qed.

Theorem tradeoff_side k x x' h c : occurs k x -> occurs k x' -> x != x' -> 0 < c ->
  tame k h -> W k x h - c * W k x' h <= r k x x' c.
Proof.
elim: k x x' h c => [|k IH] x x' h c occ occ' ne c0 [h01 hg].
  have [r0 r1] := rec occ occ' ne c0; have /andP[h0 h1] := h01 [::] erefl.
  rewrite /= !mul1r -{1}[h _]mul1r -mulrBl.
  have [le|gt] := lerP c 1; last first.
    by apply: le_trans r0; rewrite mulr_le0_ge0 // subr_le0 ltW.
  by apply: le_trans r1; rewrite ler_pimulr // subr_ge0.
pose u z := W k z (fun s => h (z :: s)).
have step (y : S) : occurs k.+1 y -> W k.+1 y h = \sum_(z | occurs k z) K k y z * u z.
  move=> oy; rewrite /= (bigID (occurs k)) /= [X in _ + X]big1 ?addr0 // => z noz.
  by rewrite (Kout oy noz) mul0r.
rewrite !step //; have := rec occ occ' ne c0; apply; split=> [z oz|z w oz ow zw].
  by apply: W_unit => // s sz; rewrite h01 //= sz.
have change y c1 : occurs k y -> 0 < c1 ->
    W k y (fun s => h (z :: s)) - c1 * W k y (fun s => h (w :: s)) <= g k z w c1.
  move=> oy c10; apply: W_mean => // s sz.
  by have := hg [::] s z w c1; rewrite /= sz; apply.
have move_on y c1 : 0 < c1 ->
    W k z (fun s => h (y :: s)) - c1 * W k w (fun s => h (y :: s)) <= r k z w c1.
  by move=> c10; apply: IH => //; apply: tame_cons; split.
by split=> c1 c2 c10 c20; apply: compose_step (ltW c10) _ _;
  [exact: change | exact: move_on | exact: move_on | exact: change].
Qed.

End Side.

Section TradeoffChain.
Variables (R : realFieldType) (S O : finType) (m : S -> R) (P : nat -> S -> S -> R).
Hypothesis ch : chain m P.
Hypothesis P1 : forall t x, \sum_z P t x z = 1.
Variables (T i k : nat).
Hypothesis Tik : T = (i + k.+1)%N.

Local Notation mass := (law_at m P).
Let occurs t x := 0 < mass t x.
Let L := beyond (kernel_past m P) (fun=> 1 : R) i.
Let Right := beyond (kernel_right P T) (fun=> 1 : R) k.
Let F (h : seq S -> R) a b e := L a (fun l => Right e (fun r => h (rev l ++ b :: r))).

Lemma mass_ge0 t x : 0 <= mass t x.
Proof.
elim: t x => [|t IH] x /=; first exact: start_ge0 ch _.
by apply: sumr_ge0 => z _; rewrite mulr_ge0 ?(matrix_ge0 ch).
Qed.

Lemma mass_none t x : ~~ (0 < mass t x) -> mass t x = 0.
Proof. by rewrite -leNgt => le; apply/eqP; rewrite eq_le le mass_ge0. Qed.

Lemma past_ge0 j x z : 0 <= kernel_past m P j x z.
Proof. by rewrite divr_ge0 ?mulr_ge0 ?mass_ge0 ?(matrix_ge0 ch). Qed.

Lemma past_sum j x : occurs j.+1 x -> \sum_z kernel_past m P j x z = 1.
Proof. by move=> occ; rewrite -mulr_suml divff // gt_eqF. Qed.

Lemma past_out j x z : occurs j.+1 x -> ~~ occurs j z -> kernel_past m P j x z = 0.
Proof. by move=> _ /mass_none no; rewrite /kernel_past no !mul0r. Qed.

Lemma left_mass j x h :
  beyond (kernel_left P) m j x h = mass j x * beyond (kernel_past m P) (fun=> 1) j x h.
Proof.
elim: j x h => [|j IH] x h; first by rewrite /= mul1r.
rewrite [LHS]/= [X in _ * X]/= mulr_sumr.
apply: eq_bigr => z _; rewrite IH /kernel_left /kernel_past mulrA [P j z x * _]mulrC mulrA.
congr (_ * _); have [e|ne] := eqVneq (mass j.+1 x) 0; last by rewrite mulrCA divff ?mulr1.
rewrite e mul0r; move/eqP: e; rewrite /= psumr_eq0 => [/allP all0|y _].
  by apply/eqP; rewrite (implyP (all0 z (mem_index_enum z))).
by rewrite mulr_ge0 ?mass_ge0 ?(matrix_ge0 ch).
Qed.

Lemma right_ge0 j x z : 0 <= kernel_right P T j x z.
Proof. exact: matrix_ge0 ch _ _ _. Qed.

Lemma right_sum j x : (predT : pred S) x -> \sum_z kernel_right P T j x z = 1.
Proof. by move=> _; exact: P1. Qed.

Lemma right_out j (x z : S) : (predT : pred S) x -> ~~ (predT : pred S) z ->
  kernel_right P T j x z = 0.
Proof. by []. Qed.

Let L1 := @W1 R S (kernel_past m P) occurs past_sum past_out.
Let R1 := @W1 R S (kernel_right P T) (fun=> predT) right_sum right_out.

Lemma mean_F h x : occurs i x -> conditional_mean m P T i h x = F h x x x.
Proof.
move=> occ; rewrite /conditional_mean (partial_mean_both m P Tik) /both left_mass.
have -> : probability m P T i x = mass i x.
  rewrite [LHS](_ : _ = partial_mean m P T i (fun=> 1) x); last first.
    by apply: eq_bigr => s _; rewrite mulr1.
  rewrite (partial_mean_both m P Tik) /both left_mass.
  rewrite (_ : beyond _ _ i x _ = L x (fun=> 1)); last by rewrite R1.
  by rewrite /L L1 // mulr1.
by rewrite mulrAC divff ?mul1r // gt_eqF.
Qed.

Variables (g r l : nat -> S -> S -> R -> R) (M : seq S -> O -> R).
Hypothesis levels : tradeoff_levels T g M.
Hypothesis recR : tradeoff_recursion (kernel_right P T) (fun=> predT)
  (fun j => g (T - j.+1)%N) r.
Hypothesis recL : tradeoff_recursion (kernel_past m P) occurs g l.
Variables (x x' : S).
Hypotheses (xx' : x != x') (px : 0 < mass i x) (px' : 0 < mass i x').

Section Event.
Variable E : pred O.
Let h s := \sum_(o | E o) M s o.

Lemma event_released y : occurs i y -> \sum_(o | E o) released m P T i M y o = F h y y y.
Proof.
move=> occ; rewrite -mean_F // -mulr_suml; congr (_ / _); rewrite exchange_big /=.
by apply: eq_bigr => s _; rewrite mulr_sumr.
Qed.

Lemma h01 s : size s = T -> 0 <= h s <= 1.
Proof.
have [M0 M1 _] := levels; move=> sz; rewrite sumr_ge0 => [|o _]; last exact: M0.
by rewrite -(M1 s sz) [X in _ <= X](bigID E) /= ler_addl sumr_ge0 // => o _; exact: M0.
Qed.

Lemma h_moves b s z w c : (size b + (size s).+1)%N = T -> z != w -> 0 < c ->
  h (b ++ z :: s) - c * h (b ++ w :: s) <= g (size b) z w c.
Proof. by have [_ _ moves] := levels; move=> sz zw c0; exact: moves. Qed.

Lemma size_all (ll rr : seq S) y : size ll = i -> size rr = k -> size (rev ll ++ y :: rr) = T.
Proof. by move=> sl sr; rewrite size_cat size_rev /= sl sr Tik. Qed.

Let L_mean := @W_mean R S (kernel_past m P) occurs past_ge0 past_sum past_out.
Let R_mean := @W_mean R S (kernel_right P T) (fun=> predT) right_ge0 right_sum right_out.

Lemma step_own a e c : occurs i a -> 0 < c -> F h a x e - c * F h a x' e <= g i x x' c.
Proof.
move=> occ c0; apply: L_mean => // ll sl; apply: R_mean => // rr sr.
have -> : i = size (rev ll) by rewrite size_rev.
by apply: h_moves => //; rewrite size_rev sl sr Tik.
Qed.

Lemma step_right a b c : occurs i a -> 0 < c -> F h a b x - c * F h a b x' <= r k x x' c.
Proof.
move=> occ c0; apply: L_mean => // ll sl.
apply: (tradeoff_side right_ge0 right_sum right_out recR) => //.
split=> [s sz|bb s z w d e zw d0]; first by rewrite h01 ?size_all.
rewrite -!cat_cons !catA.
have Te : T = (size (rev ll ++ b :: bb) + (size s).+1)%N.
  by rewrite size_cat size_rev /= sl Tik -e -addSn addnA.
have -> : (T - (size s).+1 = size (rev ll ++ b :: bb))%N by rewrite {1}Te addnK.
exact: h_moves.
Qed.

Lemma step_left b e c : 0 < c -> F h x b e - c * F h x' b e <= l i x x' c.
Proof.
move=> c0; apply: (tradeoff_side past_ge0 past_sum past_out recL) => //.
split=> [s sz|bb s z w d sz zw d0].
  by apply: (W_unit right_ge0 right_sum right_out) => // rr sr; rewrite h01 ?size_all.
apply: R_mean => // rr sr; rewrite !rev_cat !rev_cons !cat_rcons -!catA !cat_cons -(size_rev s).
apply: h_moves => //; rewrite size_rev size_cat size_rev /= sr Tik -sz.
by rewrite -[RHS]addnA addSn [RHS]addnS [LHS]addnS addnCA.
Qed.

Lemma three_steps (p q1 q2 q A B D c1 c2 c3 : R) : 0 < c1 -> 0 < c2 ->
    p - c1 * q1 <= A -> q1 - c2 * q2 <= B -> q2 - c3 * q <= D ->
  p - c1 * c2 * c3 * q <= A + c1 * B + c1 * c2 * D.
Proof.
move=> c10 c20 s1 s2 s3; apply: compose_step s3; first by rewrite ltW ?mulr_gt0.
by apply: compose_step s1 s2; exact: ltW.
Qed.

End Event.

Theorem tradeoff_node :
  let A := released m P T i M x in
  let B := released m P T i M x' in
  let own := g i x x' in let right := r k x x' in let left := l i x x' in
  [/\ composed3 own right left A B /\ composed3 own left right A B,
      composed3 right own left A B /\ composed3 left own right A B &
      composed3 right left own A B /\ composed3 left right own A B].
Proof.
by split; split=> E c1 c2 c3 c10 c20 c30; rewrite !event_released //;
  [ apply: (@three_steps _ (F _ x x' x) (F _ x x' x'))
  | apply: (@three_steps _ (F _ x x' x) (F _ x' x' x))
  | apply: (@three_steps _ (F _ x x x') (F _ x x' x'))
  | apply: (@three_steps _ (F _ x' x x) (F _ x' x' x))
  | apply: (@three_steps _ (F _ x x x') (F _ x' x x'))
  | apply: (@three_steps _ (F _ x' x x) (F _ x' x x')) ] => //;
  [> (exact: step_own || exact: step_right || exact: step_left) ..].
Qed.

End TradeoffChain.

(* The scalar bound of the program. *)
Section Scalar.
Variables (R : realFieldType) (S : finType) (p q u : S -> R) (c : R).
Let above z := Num.max (p z - c * q z) 0.
Let below z := Num.max (c * q z - p z) 0.
Let eta := \sum_z above z.
Let b := \sum_z below z.
Let value := \sum_z p z * u z - c * (\sum_z q z * u z).
Hypothesis u01 : forall z, 0 <= u z <= 1.

Lemma parts z : p z - c * q z = above z - below z.
Proof.
rewrite /above /below -[c * q z - p z]opprB.
have [le|lt] := leP (p z - c * q z) 0.
  by rewrite max_l ?oppr_ge0 // sub0r opprK.
by rewrite max_r ?subr0 // oppr_le0 ltW.
Qed.

Lemma above_ge0 z : 0 <= above z. Proof. by rewrite le_maxr lexx orbT. Qed.
Lemma below_ge0 z : 0 <= below z. Proof. by rewrite le_maxr lexx orbT. Qed.

Lemma apart z : above z * below z = 0.
Proof.
rewrite /above /below -[c * q z - p z]opprB.
have [le|lt] := leP (p z - c * q z) 0; first by rewrite mul0r.
by rewrite [X in _ * X]max_r ?mulr0 // oppr_le0 ltW.
Qed.

Lemma value_parts : value = \sum_z above z * u z - \sum_z below z * u z.
Proof.
rewrite /value mulr_sumr -!sumrB; apply: eq_bigr => z _.
by rewrite mulrA -!mulrBl parts.
Qed.

Lemma value_eta : value <= eta.
Proof.
rewrite value_parts ler_subl_addr; apply: ler_paddr.
  by apply: sumr_ge0 => z _; rewrite mulr_ge0 ?below_ge0 //; case/andP: (u01 z).
by apply: ler_sum => z _; rewrite ler_pimulr ?above_ge0 //; case/andP: (u01 z).
Qed.

Lemma coupling (J : S -> S -> R) : 0 < eta -> 0 < b ->
    (forall z w, z != w -> u z - b / eta * u w <= J z w) ->
  value <= \sum_z \sum_w (above z * below w / b * J z w).
Proof.
move=> eta0 b0 le.
have -> : value = \sum_z \sum_w (above z * below w / b * (u z - b / eta * u w)).
  rewrite value_parts; under [in RHS]eq_bigr do (under eq_bigr do rewrite mulrBr; rewrite sumrB).
  rewrite sumrB; congr (_ - _).
    apply: eq_bigr => z _; rewrite -mulr_suml -mulr_suml -mulr_sumr.
    by rewrite -/b mulfK ?gt_eqF.
  rewrite exchange_big /=; apply: eq_bigr => w _.
  rewrite (eq_bigr (fun z => above z * (below w * u w / eta))) => [|z _]; last first.
    rewrite mulrA -[above z * below w / b * (b / eta)]mulrA [b^-1 * _]mulrA mulVf ?gt_eqF // mul1r.
    by rewrite -!mulrA [u w * _]mulrC.
  by rewrite -mulr_suml -/eta mulrCA mulfV ?gt_eqF ?mulr1.
apply: ler_sum => z _; apply: ler_sum => w _.
have [->|ne] := eqVneq z w; first by rewrite apart !mul0r.
by rewrite ler_wpmul2l ?le // divr_ge0 ?mulr_ge0 ?above_ge0 ?below_ge0 // ltW.
Qed.

Lemma scalar (J1 : R) : \sum_z p z = 1 -> \sum_z q z = 1 -> 1 <= c -> 0 < eta ->
    (forall z w, z != w -> u z - (1 + (c - 1) / eta) * u w <= J1) ->
  value <= eta * J1.
Proof.
move=> p1 q1 c1 eta0 le.
have be : b = eta + (c - 1).
  have eb : eta - b = 1 - c.
    rewrite /eta /b -sumrB -{1}p1 -[c]mulr1 -q1 mulr_sumr -sumrB.
    by apply: eq_bigr => z _; rewrite -parts.
  by rewrite -[c - 1]opprB -eb opprB addrC subrK.
have b0 : 0 < b by rewrite be ltr_paddr // subr_ge0.
have slope : b / eta = 1 + (c - 1) / eta by rewrite be mulrDl divff ?gt_eqF.
apply: le_trans (@coupling (fun _ _ => J1) eta0 b0 _) _; first by rewrite slope.
under eq_bigr do rewrite -mulr_suml -mulr_suml -mulr_sumr -/b.
by rewrite -mulr_suml; under eq_bigr do rewrite mulfK ?gt_eqF //.
Qed.

End Scalar.
